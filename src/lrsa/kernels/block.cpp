// The point side of an LRSA block on a processor with vector instructions, forward and backward, in fp32.
//
// compress: the latents q attend to all points
//     y = Norm(h),  k = y W_K + b_K,  v = y W_V + b_V,  s = q kᵀ / √d_h + bias,
//     c = max s,  Σ exp(s - c),  Σ exp(s - c) v
// read: every point attends to the latents, of which keys k and values v are given
//     y = Norm(h),  p = y W_Q + b_Q,  o = softmax(p kᵀ / √d_h) v,  g = h + o W_O + b_O
// feed: the FFN of every point
//     y = Norm(g),  a = y W_1 + b_1,  h' = g + GELU(a) W_2 + b_2
//
// Points pass in pieces that stay in the second-level cache. A backward pass makes y and the weights of a
// softmax again, piece by piece; of a forward pass it needs k, v, p, o, g and a. Every thread has its share
// of the pieces and sums of its own, which are added in order: the same bits for the same number of threads.
//
// Matrices are row-major; weights are (out, in) as torch has them. B samples, N points, M latents, width d.
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <vector>

using Floats = std::vector<float>;

// ---- Vectors --------------------------------------------------------------------------------------------

#ifdef __AVX512F__
constexpr long LANES = 16, ACROSS = 4;  // floats in a vector; vectors side by side in a tile of a product
#else
constexpr long LANES = 8, ACROSS = 2;
#endif
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float anywhere __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int ints __attribute__((vector_size(4 * LANES)));
typedef unsigned bits __attribute__((vector_size(4 * LANES)));

inline vec load(const float *p) { return *(const anywhere *)p; }
inline void store(float *p, vec x) { *(anywhere *)p = x; }
inline vec larger(vec a, vec b) { return b > a ? b : a; }

#ifdef __AVX512F__
// Of the first n < LANES lanes.
inline __mmask16 lanes(long n) { return (1 << n) - 1; }
inline vec load_some(const float *p, long n) { return _mm512_maskz_loadu_ps(lanes(n), p); }
inline vec some(vec x, long n) { return _mm512_maskz_mov_ps(lanes(n), x); }
inline void store_some(float *p, vec x, long n) { _mm512_mask_storeu_ps(p, lanes(n), x); }
inline float sum(vec x) { return _mm512_reduce_add_ps(x); }
inline float most(vec x) { return _mm512_reduce_max_ps(x); }
#else
inline ints lanes(long n) { return ints{0, 1, 2, 3, 4, 5, 6, 7} < (int)n; }
inline vec load_some(const float *p, long n) { return _mm256_maskload_ps(p, (__m256i)lanes(n)); }
inline vec some(vec x, long n) { return (vec)((ints)x & lanes(n)); }
inline void store_some(float *p, vec x, long n) { _mm256_maskstore_ps(p, (__m256i)lanes(n), x); }
inline float sum(vec x) { return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7])); }
inline float most(vec x) {
    float top = x[0];
    for (int i = 1; i < 8; i++) top = std::max(top, x[i]);
    return top;
}
#endif
// The first n lanes, where n may be more than there are; zeros behind.
inline vec load(const float *p, long n) { return n < LANES ? load_some(p, n) : load(p); }
inline vec first(vec x, long n) { return n < LANES ? some(x, n) : x; }
inline void store(float *p, vec x, long n) { n < LANES ? store_some(p, x, n) : store(p, x); }

// exp x for x < 88, and 0 below -87: x = k ln 2 + r, and a polynomial for exp r.
inline vec exponential(vec x) {
    vec low = vec{} - 87.f;
    vec within = x < low ? low : x;
    vec shifted = within * 1.44269504f + 12582912.f, k = shifted - 12582912.f;  // k in its low bits
    vec r = (within - k * 0.693359375f) + k * 2.12194440e-4f;
    vec q = r * 0.00137488525f + 0.00836962025f;
    q = q * r + 0.041669645f;
    q = q * r + 0.166665126f;
    q = q * r + 0.499999879f;
    vec y = (q * (r * r) + r) + 1.f;
    return x < low ? vec{} : (vec)((bits)y + ((bits)shifted << 23));
}

// Distribution and density of the standard normal law: erfc z = exp(-z²) t Q(t) with t = 1 / (1 + 0.4 z).
inline void normal(vec x, vec &below, vec &density) {
    vec z = larger(x, -x) * 0.707106781f, t = 1.f / (z * 0.4f + 1.f), e = exponential(x * x * -0.5f);
    vec q = t * 0.0783607292f - 0.413512251f;
    q = q * t + 0.721436347f;
    q = q * t - 0.413184856f;
    q = q * t + 0.432989295f;
    q = q * t + 0.130997613f;
    q = q * t + 0.238090931f;
    q = q * t + 0.224822191f;
    vec tail = q * t * e * 0.5f;
    below = x > vec{} ? 1.f - tail : tail;
    density = e * 0.398942280f;
}

// ---- Products of matrices -------------------------------------------------------------------------------

constexpr long LATENTS = 64;  // columns of a block of scores
constexpr long BLOCK = 48;    // and its points
constexpr long DEPTH = 128;   // terms of a sum of products at once

// The left factor, by where its entry (r, k) is, and how many of its rows a tile has.
struct Rows {
    const float *at;
    long ld;
    static constexpr int TALL = 6;
    long row() const { return ld; }
    long column() const { return 1; }
};
template <int Tall>
struct Columns {  // transposed
    const float *at;
    long ld;
    static constexpr int TALL = Tall;
    long row() const { return 1; }
    long column() const { return ld; }
};
struct Scores {
    const float *at;
    static constexpr int TALL = 6;
    constexpr long row() const { return LATENTS; }
    constexpr long column() const { return 1; }
};
struct Out {
    float *at;
    long ld;
    bool add;  // to what is there
};

// R rows and V vectors of out = start + left · right from column c0 on, where `right` begins; n lanes of the
// last vector.
template <int R, int V, class Left>
inline __attribute__((always_inline)) void tile(long r0, long c0, long n, long K, Left left,
                                                const float *right, long ldr, const float *start, Out out) {
    vec sums[R][V];
#pragma GCC unroll 32
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            if (!start) sums[r][v] = vec{};
            else sums[r][v] = V > 1 ? load(start + c0 + LANES * v) : load(start + c0, n);
        }
    const float *a = left.at + r0 * left.row(), *b = right;
    for (long k = 0; k < K; k++, a += left.column(), b += ldr) {
        vec x[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) x[v] = V > 1 ? load(b + LANES * v) : load(b, n);
#pragma GCC unroll 32
        for (int r = 0; r < R; r++) {
            float y = a[r * left.row()];
#pragma GCC unroll 4
            for (int v = 0; v < V; v++) sums[r][v] += y * x[v];
        }
    }
#pragma GCC unroll 32
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            float *p = out.at + (r0 + r) * out.ld + c0 + LANES * v;
            if (V > 1) store(p, out.add ? load(p) + sums[r][v] : sums[r][v]);
            else store(p, out.add ? load(p, n) + sums[r][v] : sums[r][v], n);
        }
}

template <int R, int V, class Left>
inline void strip(long rows, long c, long n, long K, Left left, const float *right, long ldr,
                  const float *start, Out out) {
    long r = 0;
    for (; r + R <= rows; r += R) tile<R, V>(r, c, n, K, left, right, ldr, start, out);
    for (; r + 2 <= rows; r += 2) tile<2, V>(r, c, n, K, left, right, ldr, start, out);
    for (; r < rows; r++) tile<1, V>(r, c, n, K, left, right, ldr, start, out);
}

// out = start + left (rows, K) · right (K, columns), in parts of K for which a strip of `right` stays in L1.
// Where rows of a strip are a power of 2 apart they would drive each other out: it is copied if many use it.
template <class Left>
void product(long rows, long columns, long K, Left left, const float *right, long ldr, const float *start,
             Out out) {
    constexpr int TALL = Left::TALL;
    constexpr long WIDE = ACROSS * LANES, MANY = 48;
    alignas(64) float copy[DEPTH * WIDE];
    long parts = (K + DEPTH - 1) / DEPTH;
    for (long part = 0, k = 0; part < parts; part++) {
        long depth = K * (part + 1) / parts - k, c = 0;
        for (; c + WIDE <= columns; c += WIDE) {
            bool copied = rows >= MANY && ldr > WIDE;
            if (copied)
                for (long i = 0; i < depth; i++) std::copy_n(right + i * ldr + c, WIDE, copy + i * WIDE);
            strip<TALL, ACROSS>(rows, c, LANES, depth, left, copied ? copy : right + c, copied ? WIDE : ldr,
                                start, out);
        }
        if (ACROSS > 2)
            for (; c + 2 * LANES <= columns; c += 2 * LANES)
                strip<2 * TALL, 2>(rows, c, LANES, depth, left, right + c, ldr, start, out);
        for (; c < columns; c += LANES)
            strip<2 * TALL, 1>(rows, c, std::min(LANES, columns - c), depth, left, right + c, ldr, start,
                               out);
        k += depth;
        left.at += depth * left.column();
        right += depth * ldr;
        start = nullptr;
        out.add = true;
    }
}

// y (n, out) = x (n, in) W + b, with W (in, out)
void linear(long n, long in, long out, const float *x, const float *W, const float *b, float *y,
            bool add = false) {
    product(n, out, in, Rows{x, in}, W, out, b, Out{y, out, add});
}

// dW (out, in) += dyᵀ x,  db += Σ dy
void linear_gradient(long n, long in, long out, const float *dy, const float *x, float *dW, float *db) {
    product(out, in, n, Columns<6>{dy, out}, x, in, nullptr, Out{dW, in, true});
    for (long c = 0; c < out; c += LANES) {
        const float *p = dy + c;
        vec s{};
        long left = out - c, i = 0;
        for (; i + 4 <= n; i += 4, p += 4 * out)  // by fours: a shorter chain, faster and rounded less
            s += (load(p, left) + load(p + out, left)) + (load(p + 2 * out, left) + load(p + 3 * out, left));
        for (; i < n; i++, p += out) s += load(p, left);
        store(db + c, load(db + c, left) + s, left);
    }
}

Floats transposed(long rows, long columns, const float *from) {
    Floats to(rows * columns);
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
    return to;
}

// ---- Norm and GELU, point by point ----------------------------------------------------------------------

struct Norm {
    const float *weight, *bias;
    float eps;
};

// Mean and 1 / deviation of the d entries of x.
inline void moments(long d, const float *x, float eps, float &mean, float &rate) {
    vec s{}, q{};
    for (long c = 0; c < d; c += LANES) s += load(x + c, d - c);
    mean = sum(s) / d;
    for (long c = 0; c < d; c += LANES) {
        vec t = first(load(x + c, d - c) - mean, d - c);
        q += t * t;
    }
    rate = 1 / std::sqrt(sum(q) / d + eps);
}

void normalise(long n, long d, const float *x, Norm norm, float *y) {
    for (long i = 0; i < n; i++, x += d, y += d) {
        float mean, rate;
        moments(d, x, norm.eps, mean, rate);
        for (long c = 0; c < d; c += LANES) {
            vec t = (load(x + c, d - c) - mean) * rate;
            store(y + c, t * load(norm.weight + c, d - c) + load(norm.bias + c, d - c), d - c);
        }
    }
}

// dx = through + the gradient through the norm (through may be null);  dw, db += those of its parameters
void normalise_gradient(long n, long d, const float *x, Norm norm, const float *dy, const float *through,
                        float *dx, float *dw, float *db) {
    for (long i = 0; i < n; i++, x += d, dy += d, dx += d) {
        float mean, rate;
        moments(d, x, norm.eps, mean, rate);
        vec s{}, q{};
        for (long c = 0; c < d; c += LANES) {
            vec g = load(dy + c, d - c) * load(norm.weight + c, d - c);
            s += g;
            q += g * (load(x + c, d - c) - mean);
        }
        float level = sum(s) / d, slope = sum(q) * rate * rate / d;
        for (long c = 0; c < d; c += LANES) {
            vec t = load(x + c, d - c) - mean, g = load(dy + c, d - c);
            vec out = (g * load(norm.weight + c, d - c) - level - t * slope) * rate;
            if (through) out += load(through + i * d + c, d - c);
            store(dx + c, out, d - c);
            store(dw + c, load(dw + c, d - c) + g * t * rate, d - c);
            store(db + c, load(db + c, d - c) + g, d - c);
        }
    }
}

// u = GELU(a) = a Φ(a), and where du is given, du *= GELU'(a) = Φ(a) + a φ(a)
void gelu(long size, const float *a, float *u, float *du) {
    for (long c = 0; c < size; c += LANES) {
        vec x = load(a + c, size - c), below, density;
        normal(x, below, density);
        store(u + c, x * below, size - c);
        if (du) store(du + c, load(du + c, size - c) * (below + x * density), size - c);
    }
}

// ---- How points are shared among threads ----------------------------------------------------------------

struct Sizes {
    long samples, points, latents, heads, width, hidden, threads;
    float eps;
    long inner() const { return width / heads; }  // d_h
    // Points of a piece: several arrays of (points, channels) fill half of a second-level cache of 1 MB.
    long piece() const {
        long channels = std::max(width, hidden), most = 36864 / channels / BLOCK;
        return BLOCK * std::min(std::max(most, 1L), 3L);
    }
};

struct Piece {
    int thread;
    long sample, slot, begin, count;  // slot: of sums that one thread makes for one sample
};

// A thread has consecutive pieces of consecutive samples, so that thread + sample names a slot.
struct Slots {
    long count;
    std::vector<long> sample;
    explicit Slots(const Sizes &s) : count(s.samples + s.threads - 1), sample(count, 0) {}
};

template <class Body>
void for_each_piece(const Sizes &s, Slots &slots, Body body) {
    long size = s.piece(), each = (s.points + size - 1) / size, all = s.samples * each;
#pragma omp parallel num_threads(s.threads)
    {
        long t = omp_get_thread_num(), team = omp_get_num_threads();
        // A smaller team than asked for takes the same shares, one after the other: the bits stay.
        for (; t < s.threads; t += team)
            for (long i = all * t / s.threads; i < all * (t + 1) / s.threads; i++) {
                long sample = i / each, begin = i % each * size;
                slots.sample[t + sample] = sample;
                body(Piece{(int)t, sample, t + sample, begin, std::min(size, s.points - begin)});
            }
    }
}

// to = Σ over threads of their parts of `from`
void gather(long threads, long size, const float *from, float *to) {
    for (long c = 0; c < size; c += LANES) {
        vec s = load(from + c, size - c);
        for (long t = 1; t < threads; t++) s += load(from + t * size + c, size - c);
        store(to + c, s, size - c);
    }
}

// ---- compress -------------------------------------------------------------------------------------------

// The softmax over points so far, of one sample: c and Σ exp(s - c) for (head, latent), Σ exp(s - c) v for
// (head, channel, latent).
struct Running {
    float *top, *total, *weighted;
};

// A block of scores (m, columns) joins: they become exp(s - c).
void join(long m, long columns, long M, long D, float *scores, const float *bias, float *top, float *total,
          float *weighted) {
    for (long c = 0; c < columns; c += LANES) {
        long n = columns - c;
        vec old = load(top + c, n), high = old, more{};
        for (long r = 0; r < m; r++) {
            float *p = scores + r * LATENTS + c;
            if (bias) store(p, load(p) + bias[r]);
            high = larger(high, load(p));
        }
        if (most(first(high - old, n)) > 0) {
            vec shrink = exponential(old - high);
            store(top + c, high, n);
            store(total + c, load(total + c, n) * shrink, n);
            for (float *w = weighted + c; w < weighted + D * M; w += M) store(w, load(w, n) * shrink, n);
        }
        for (long r = 0; r < m; r++) {
            float *p = scores + r * LATENTS + c;
            vec e = exponential(load(p) - high);
            store(p, e);
            more += e;
        }
        store(total + c, load(total + c, n) + more, n);
    }
}

// What a thread's sums for a sample add to those of the sample.
void merge(const Sizes &s, const Running &part, Running all) {
    for (long i = 0; i < s.heads * s.latents; i++) {
        float top = std::max(part.top[i], all.top[i]);
        float theirs = std::exp(part.top[i] - top), ours = std::exp(all.top[i] - top);
        all.top[i] = top;
        all.total[i] = ours * all.total[i] + theirs * part.total[i];
        long head = i / s.latents, latent = i % s.latents, D = s.inner();
        for (long d = 0; d < D; d++) {
            float &sum = all.weighted[i * D + d];
            sum = ours * sum + theirs * part.weighted[(head * D + d) * s.latents + latent];
        }
    }
}

// Queries (M, d), of all heads, as scale · q for (head, channel, latent).
Floats by_channel(long M, long heads, long D, const float *q, long ld, float scale) {
    Floats to(heads * D * M);
    for (long m = 0; m < M; m++)
        for (long c = 0; c < heads * D; c++) to[c * M + m] = scale * q[m * ld + c];
    return to;
}

// ... and for (head, latent, channel).
Floats by_latent(long M, long heads, long D, const float *q, long ld, float scale) {
    Floats to(heads * D * M);
    for (long i = 0; i < heads; i++)
        for (long m = 0; m < M; m++)
            for (long d = 0; d < D; d++) to[(i * M + m) * D + d] = scale * q[m * ld + i * D + d];
    return to;
}

// h (B, N, d), bias (B, N) or null, W (2 d, d) and b of keys and values, q (M, d)
// -> top, total (B, heads, M), weighted (B, heads, M, d_h), and keys and values (B, N, 2 d) if not null
extern "C" void compress(const Sizes &s, const float *h, const float *bias, const float *norm_weight,
                         const float *norm_bias, const float *W, const float *b, const float *q, float *top,
                         float *total, float *weighted, float *kept) {
    long N = s.points, M = s.latents, H = s.heads, D = s.inner(), d = s.width, size = s.piece();
    Norm norm{norm_weight, norm_bias, s.eps};
    Floats Wt = transposed(2 * d, d, W), qt = by_channel(M, H, D, q, d, 1 / std::sqrt((float)D));
    Slots slots(s);
    Floats tops(slots.count * H * M, -FLT_MAX), totals(slots.count * H * M), sums(slots.count * M * d);
    Floats ys(s.threads * size * d), kvs(kept ? 0 : s.threads * size * 2 * d);
    Floats blocks(s.threads * BLOCK * LATENTS);
    for_each_piece(s, slots, [&](Piece p) {
        long at = p.sample * N + p.begin;
        float *y = &ys[p.thread * size * d], *scores = &blocks[p.thread * BLOCK * LATENTS];
        float *kv = kept ? kept + at * 2 * d : &kvs[p.thread * size * 2 * d];
        normalise(p.count, d, h + at * d, norm, y);
        linear(p.count, d, 2 * d, y, Wt.data(), b, kv);
        for (long i = 0; i < H; i++)
            for (long l = 0; l < M; l += LATENTS)
                for (long j = 0; j < p.count; j += BLOCK) {
                    long m = std::min(BLOCK, p.count - j), columns = std::min(LATENTS, M - l);
                    const float *k = kv + j * 2 * d + i * D, *v = k + d;
                    float *w = &sums[p.slot * M * d + i * D * M];
                    long row = (p.slot * H + i) * M + l;
                    product(m, columns, D, Rows{k, 2 * d}, &qt[i * D * M + l], M, nullptr,
                            Out{scores, LATENTS, false});
                    join(m, columns, M, D, scores, bias ? bias + at + j : nullptr, &tops[row], &totals[row],
                         w + l);
                    product(D, columns, m, Columns<4>{v, 2 * d}, scores, LATENTS, nullptr,
                            Out{w + l, M, true});
                }
    });
    std::fill(top, top + s.samples * H * M, -FLT_MAX);
    std::fill(total, total + s.samples * H * M, 0.f);
    std::fill(weighted, weighted + s.samples * M * d, 0.f);
    for (long slot = 0; slot < slots.count; slot++) {
        long to = slots.sample[slot];
        merge(s, Running{&tops[slot * H * M], &totals[slot * H * M], &sums[slot * M * d]},
              Running{top + to * H * M, total + to * H * M, weighted + to * M * d});
    }
}

// Of dtotal (B, heads, M) and dweighted (B, heads, M, d_h)
// -> dh (B, N, d) and the gradients of the parameters and of q
extern "C" void compress_gradient(const Sizes &s, const float *h, const float *bias,
                                  const float *norm_weight, const float *norm_bias, const float *W,
                                  const float *q, const float *kept, const float *top, const float *dtotal,
                                  const float *dweighted, float *dh, float *dnorm_weight, float *dnorm_bias,
                                  float *dW, float *db, float *dq) {
    long N = s.points, M = s.latents, H = s.heads, D = s.inner(), d = s.width, T = s.threads;
    long size = s.piece();
    Norm norm{norm_weight, norm_bias, s.eps};
    float scale = 1 / std::sqrt((float)D);
    Floats qt = by_channel(M, H, D, q, d, scale), qs = by_latent(M, H, D, q, d, scale);
    Floats dwt(s.samples * M * d);  // dweighted for (sample, head, channel, latent)
    for (long i = 0; i < s.samples * H; i++)
        for (long m = 0; m < M; m++)
            for (long c = 0; c < D; c++) dwt[(i * D + c) * M + m] = dweighted[(i * M + m) * D + c];
    Slots slots(s);
    Floats dqs(T * M * d), dnws(T * d), dnbs(T * d), dWs(T * 2 * d * d), dbs(T * 2 * d);
    Floats ys(T * size * d), dys(T * size * d), dkvs(T * size * 2 * d);
    Floats blocks(T * 2 * BLOCK * LATENTS);
    for_each_piece(s, slots, [&](Piece p) {
        long t = p.thread, at = p.sample * N + p.begin;
        float *y = &ys[t * size * d], *dy = &dys[t * size * d];
        const float *kv = kept + at * 2 * d;
        float *dkv = &dkvs[t * size * 2 * d];
        float *e = &blocks[t * 2 * BLOCK * LATENTS], *ds = e + BLOCK * LATENTS;
        for (long i = 0; i < H; i++)
            for (long l = 0; l < M; l += LATENTS)
                for (long j = 0; j < p.count; j += BLOCK) {
                    long m = std::min(BLOCK, p.count - j), columns = std::min(LATENTS, M - l);
                    long row = (p.sample * H + i) * M + l, channel = i * D * M + l;
                    const float *k = kv + j * 2 * d + i * D, *v = k + d, *dw = dweighted + row * D;
                    float *dk = dkv + j * 2 * d + i * D, *dv = dk + d;
                    product(m, columns, D, Rows{k, 2 * d}, &qt[channel], M, nullptr, Out{e, LATENTS, false});
                    product(m, columns, D, Rows{v, 2 * d}, &dwt[p.sample * M * d + channel], M, dtotal + row,
                            Out{ds, LATENTS, false});
                    for (long r = 0; r < m; r++) {
                        float shift = bias ? bias[at + j + r] : 0;
                        for (long c = 0; c < columns; c += LANES) {
                            float *x = e + r * LATENTS + c, *g = ds + r * LATENTS + c;
                            vec weight = exponential(load(x) + shift - load(top + row + c, columns - c));
                            store(x, weight);
                            store(g, weight * load(g));
                        }
                    }
                    product(m, D, columns, Scores{e}, dw, D, nullptr, Out{dv, 2 * d, l > 0});
                    product(m, D, columns, Scores{ds}, &qs[(i * M + l) * D], D, nullptr,
                            Out{dk, 2 * d, l > 0});
                    product(D, columns, m, Columns<4>{k, 2 * d}, ds, LATENTS, nullptr,
                            Out{&dqs[t * M * d + channel], M, true});
                }
        normalise(p.count, d, h + at * d, norm, y);
        linear_gradient(p.count, d, 2 * d, dkv, y, &dWs[t * 2 * d * d], &dbs[t * 2 * d]);
        linear(p.count, 2 * d, d, dkv, W, nullptr, dy);
        normalise_gradient(p.count, d, h + at * d, norm, dy, nullptr, dh + at * d, &dnws[t * d],
                           &dnbs[t * d]);
    });
    gather(T, d, dnws.data(), dnorm_weight);
    gather(T, d, dnbs.data(), dnorm_bias);
    gather(T, 2 * d * d, dWs.data(), dW);
    gather(T, 2 * d, dbs.data(), db);
    Floats sums(M * d);
    gather(T, M * d, dqs.data(), sums.data());
    for (long m = 0; m < M; m++)
        for (long c = 0; c < d; c++) dq[m * d + c] = scale * sums[c * M + m];
}

// ---- read and feed --------------------------------------------------------------------------------------

// Parameters, or their gradients. Of read: norm, W_Q, b_Q, W_O, b_O; of feed: norm, W_1, b_1, W_2, b_2.
// A null weight says that the stage is left out.
struct Parameters {
    float *read_weight, *read_bias, *Wq, *bq, *Wo, *bo, *feed_weight, *feed_bias, *W1, *b1, *W2, *b2;
};

// What a backward pass needs of the forward pass: p, o, g (B, N, d) and a (B, N, hidden); null: not kept.
struct Kept {
    float *p, *o, *g, *a;
};

// Weights of a softmax over M latents in place of a block of scores: for every LATENTS of them m rows.
void softmax(long m, long M, float *scores) {
    constexpr float SAFE = 60;  // exp of such scores fits, and so does its sum: without their maximum
    vec largest{};
    for (long l = 0; l < M; l += LATENTS)
        for (long r = 0; r < m; r++)
            for (long c = 0; c < std::min(LATENTS, M - l); c += LANES) {
                vec x = load(scores + l * BLOCK + r * LATENTS + c);
                largest = larger(largest, larger(x, -x));
            }
    bool safe = most(largest) < SAFE;
    for (long r = 0; r < m; r++) {
        float top = 0;
        if (!safe) {
            top = -FLT_MAX;
            for (long l = 0; l < M; l += LATENTS)
                for (long c = 0; c < std::min(LATENTS, M - l); c++)
                    top = std::max(top, scores[l * BLOCK + r * LATENTS + c]);
        }
        vec total{};
        for (long l = 0; l < M; l += LATENTS)
            for (long c = 0; c < std::min(LATENTS, M - l); c += LANES) {
                float *x = scores + l * BLOCK + r * LATENTS + c;
                vec e = first(exponential(load(x) - top), M - l - c);
                store(x, e);
                total += e;
            }
        float all = sum(total);
        for (long l = 0; l < M; l += LATENTS)
            for (long c = 0; c < std::min(LATENTS, M - l); c += LANES) {
                float *x = scores + l * BLOCK + r * LATENTS + c;
                store(x, load(x) / all);  // not times 1 / all: of one latent the weight is 1, and no more
            }
    }
}

// With the weights w of a softmax: its gradient ds = w (dw - Σ w dw) in place of dw.
void softmax_gradient(long m, long M, const float *weights, float *ds) {
    for (long r = 0; r < m; r++) {
        vec dot{};
        for (long l = 0; l < M; l += LATENTS)
            for (long c = 0; c < std::min(LATENTS, M - l); c += LANES) {
                long i = l * BLOCK + r * LATENTS + c;
                dot += load(weights + i) * load(ds + i);
            }
        float mean = sum(dot);
        for (long l = 0; l < M; l += LATENTS)
            for (long c = 0; c < std::min(LATENTS, M - l); c += LANES) {
                long i = l * BLOCK + r * LATENTS + c;
                store(ds + i, load(weights + i) * (load(ds + i) - mean));
            }
    }
}

long padded(long M) { return (M + LATENTS - 1) / LATENTS * LATENTS; }

// The latents as the products take them: (sample, head, channel, latent), or the last two the other way.
struct Latents {
    Floats keys_by_channel, keys, values_by_channel, values;
    Latents(const Sizes &s, const float *kv) {
        long M = s.latents, H = s.heads, D = s.inner(), d = s.width;
        float scale = 1 / std::sqrt((float)D);
        for (long b = 0; b < s.samples; b++) {
            const float *k = kv + b * M * 2 * d, *v = k + d;
            append(keys_by_channel, by_channel(M, H, D, k, 2 * d, scale));
            append(keys, by_latent(M, H, D, k, 2 * d, scale));
            append(values_by_channel, by_channel(M, H, D, v, 2 * d, 1));
            append(values, by_latent(M, H, D, v, 2 * d, 1));
        }
    }
    static void append(Floats &all, const Floats &more) { all.insert(all.end(), more.begin(), more.end()); }
};

// h (B, N, d), keys and values (B, M, 2 d) of the latents -> h' (B, N, d)
extern "C" void update(const Sizes &s, const float *h, const float *latents_kv, const Parameters &w,
                       const Kept &kept, float *out) {
    long N = s.points, M = s.latents, H = s.heads, D = s.inner(), d = s.width, F = s.hidden;
    long T = s.threads, size = s.piece(), widest = std::max(d, F);
    Floats Wq, Wo, W1, W2;
    if (w.Wq) Wq = transposed(d, d, w.Wq), Wo = transposed(d, d, w.Wo);
    if (w.W1) W1 = transposed(F, d, w.W1), W2 = transposed(d, F, w.W2);
    Latents latents(s, latents_kv);
    Slots slots(s);
    Floats scratch(T * size * (2 * d + widest)), blocks(T * BLOCK * padded(M));
    for_each_piece(s, slots, [&](Piece piece) {
        long n = piece.count, at = piece.sample * N + piece.begin;
        float *y = &scratch[piece.thread * size * (2 * d + widest)], *u = y + size * d;
        float *p = kept.p ? kept.p + at * d : u + size * widest, *o = kept.o ? kept.o + at * d : y;
        float *g = kept.g ? kept.g + at * d : out + at * d, *a = kept.a ? kept.a + at * F : u;
        float *scores = &blocks[piece.thread * BLOCK * padded(M)];
        const float *entry = h + at * d;
        if (w.Wq) {
            normalise(n, d, entry, Norm{w.read_weight, w.read_bias, s.eps}, y);
            linear(n, d, d, y, Wq.data(), w.bq, p);
            for (long i = 0; i < H; i++)
                for (long j = 0; j < n; j += BLOCK) {
                    long m = std::min(BLOCK, n - j), head = (piece.sample * H + i) * D * M;
                    for (long l = 0; l < M; l += LATENTS)
                        product(m, std::min(LATENTS, M - l), D, Rows{p + j * d + i * D, d},
                                &latents.keys_by_channel[head + l], M, nullptr,
                                Out{scores + l * BLOCK, LATENTS, false});
                    softmax(m, M, scores);
                    for (long l = 0; l < M; l += LATENTS)
                        product(m, D, std::min(LATENTS, M - l), Scores{scores + l * BLOCK},
                                &latents.values[head + l * D], D, nullptr, Out{o + j * d + i * D, d, l > 0});
                }
            if (g != entry) std::copy(entry, entry + n * d, g);
            linear(n, d, d, o, Wo.data(), w.bo, g, true);
            entry = g;
        }
        if (w.W1) {
            normalise(n, d, entry, Norm{w.feed_weight, w.feed_bias, s.eps}, y);
            linear(n, d, F, y, W1.data(), w.b1, a);
            gelu(n * F, a, u, nullptr);
            if (entry != out + at * d) std::copy(entry, entry + n * d, out + at * d);
            linear(n, F, d, u, W2.data(), w.b2, out + at * d, true);
        } else if (g != out + at * d) std::copy(g, g + n * d, out + at * d);
    });
}

// Where the parts of a gradient are that a thread sums up, one behind the other.
struct Sums {
    long d, F;
    long size() const { return 8 * d + F + 2 * d * d + 2 * d * F; }
    Parameters at(float *p) const {
        Parameters w;
        auto take = [&](long count) { return (p += count) - count; };
        w.read_weight = take(d), w.read_bias = take(d), w.Wq = take(d * d), w.bq = take(d);
        w.Wo = take(d * d), w.bo = take(d), w.feed_weight = take(d), w.feed_bias = take(d);
        w.W1 = take(F * d), w.b1 = take(F), w.W2 = take(d * F), w.b2 = take(d);
        return w;
    }
};

// Of dout (B, N, d) -> dh (B, N, d), the gradients of keys and values (B, M, 2 d) and of the parameters
extern "C" void update_gradient(const Sizes &s, const float *h, const float *latents_kv,
                                const Parameters &w, const Kept &kept, const float *dout, float *dh,
                                float *dkv, const Parameters &dw) {
    long N = s.points, M = s.latents, H = s.heads, D = s.inner(), d = s.width, F = s.hidden;
    long T = s.threads, size = s.piece(), each = size * (3 * d + 2 * F);
    Latents latents(s, latents_kv);
    Sums sums{d, F};
    Slots slots(s);
    Floats parts(T * sums.size()), dks(slots.count * M * d), dvs(slots.count * M * d);
    Floats scratch(T * each), blocks(T * 2 * BLOCK * padded(M));
    for_each_piece(s, slots, [&](Piece piece) {
        long t = piece.thread, n = piece.count, at = piece.sample * N + piece.begin;
        float *y = &scratch[t * each], *dy = y + size * d, *dg = dy + size * d;
        float *u = dg + size * d, *du = u + size * F;
        float *weights = &blocks[t * 2 * BLOCK * padded(M)], *ds = weights + BLOCK * padded(M);
        Parameters sum = sums.at(&parts[t * sums.size()]);
        const float *entry = h + at * d, *g = w.Wq ? kept.g + at * d : entry, *behind = dout + at * d;
        if (w.W1) {
            float *to = w.Wq ? dg : dh + at * d;
            Norm norm{w.feed_weight, w.feed_bias, s.eps};
            linear(n, d, F, behind, w.W2, nullptr, du);
            gelu(n * F, kept.a + at * F, u, du);
            linear_gradient(n, F, d, behind, u, sum.W2, sum.b2);
            normalise(n, d, g, norm, y);
            linear_gradient(n, d, F, du, y, sum.W1, sum.b1);
            linear(n, F, d, du, w.W1, nullptr, dy);
            normalise_gradient(n, d, g, norm, dy, behind, to, sum.feed_weight, sum.feed_bias);
            behind = to;
        }
        if (!w.Wq) return;
        const float *p = kept.p + at * d, *o = kept.o + at * d;
        Norm norm{w.read_weight, w.read_bias, s.eps};
        linear_gradient(n, d, d, behind, o, sum.Wo, sum.bo);
        float *dquery = dy, *doutput = y;
        linear(n, d, d, behind, w.Wo, nullptr, doutput);
        for (long i = 0; i < H; i++)
            for (long j = 0; j < n; j += BLOCK) {
                long m = std::min(BLOCK, n - j), head = (piece.sample * H + i) * D * M;
                Rows query{p + j * d + i * D, d}, gradient{doutput + j * d + i * D, d};
                float *dk = &dks[piece.slot * M * d + i * D * M], *dv = &dvs[piece.slot * M * d + i * D * M];
                for (long l = 0; l < M; l += LATENTS) {
                    long columns = std::min(LATENTS, M - l), block = l * BLOCK;
                    product(m, columns, D, query, &latents.keys_by_channel[head + l], M, nullptr,
                            Out{weights + block, LATENTS, false});
                    product(m, columns, D, gradient, &latents.values_by_channel[head + l], M, nullptr,
                            Out{ds + block, LATENTS, false});
                }
                softmax(m, M, weights);
                softmax_gradient(m, M, weights, ds);
                for (long l = 0; l < M; l += LATENTS) {
                    long columns = std::min(LATENTS, M - l), block = l * BLOCK;
                    product(m, D, columns, Scores{ds + block}, &latents.keys[head + l * D], D, nullptr,
                            Out{dquery + j * d + i * D, d, l > 0});
                    product(D, columns, m, Columns<4>{query.at, d}, ds + block, LATENTS, nullptr,
                            Out{dk + l, M, true});
                    product(D, columns, m, Columns<4>{gradient.at, d}, weights + block, LATENTS, nullptr,
                            Out{dv + l, M, true});
                }
            }
        normalise(n, d, entry, norm, y);
        linear_gradient(n, d, d, dquery, y, sum.Wq, sum.bq);
        linear(n, d, d, dquery, w.Wq, nullptr, y);
        normalise_gradient(n, d, entry, norm, y, behind, dh + at * d, sum.read_weight, sum.read_bias);
    });
    for (long t = 1; t < T; t++)
        for (long c = 0; c < sums.size(); c++) parts[c] += parts[t * sums.size() + c];
    const Parameters first_part = sums.at(parts.data());
    auto give = [](const float *from, float *to, long count) { if (to) std::copy(from, from + count, to); };
    give(first_part.read_weight, dw.read_weight, d), give(first_part.read_bias, dw.read_bias, d);
    give(first_part.Wq, dw.Wq, d * d), give(first_part.bq, dw.bq, d);
    give(first_part.Wo, dw.Wo, d * d), give(first_part.bo, dw.bo, d);
    give(first_part.feed_weight, dw.feed_weight, d), give(first_part.feed_bias, dw.feed_bias, d);
    give(first_part.W1, dw.W1, F * d), give(first_part.b1, dw.b1, F);
    give(first_part.W2, dw.W2, d * F), give(first_part.b2, dw.b2, d);
    if (!w.Wq) return;
    float scale = 1 / std::sqrt((float)D);
    std::fill(dkv, dkv + s.samples * M * 2 * d, 0.f);
    for (long slot = 0; slot < slots.count; slot++)
        for (long m = 0; m < M; m++)
            for (long c = 0; c < d; c++) {
                float *to = dkv + (slots.sample[slot] * M + m) * 2 * d + c;
                to[0] += scale * dks[(slot * d + c) * M + m];
                to[d] += dvs[(slot * d + c) * M + m];
            }
}
