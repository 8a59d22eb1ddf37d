// What has to happen in the browser: clicks apart from drags, sizes, turning by keys, files in and pictures out.
"use strict";
window.studio = (() => {
  const view = () => window.trame.refs.view;
  const canvas = () => document.getElementById("canvas");
  const say = (...words) => window.trame.trigger(...words);
  const times = [];
  let pressed = null;

  function press(event) {
    pressed = [event.clientX, event.clientY];
  }

  function click(event) {
    if (!pressed || Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4) return;
    const box = canvas().getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width;
    const up = (box.bottom - event.clientY) / box.height;
    say("clicked", [across, up, view().getCamera()]);
  }

  // The page turns to the run by itself: what the server says of the view may cross with what was chosen here.
  async function explore(path) {
    if (await window.trame.trigger("explore", [path])) window.trame.state.set("view", "explore");
  }

  // Until there is a scene, vtk.js has nothing to turn and complains about a mouse that moves.
  function drawn() {
    if (window.trame.state.get("bars").length) canvas().style.pointerEvents = "auto";
    times.push(performance.now());
  }

  // Above the picture are the header and the tools; below it the numbers begin to show.
  const ABOVE = 165;

  function watch() {
    let fresh = true;
    const tell = () => {
      const width = Math.round(canvas().clientWidth);
      if (width > 10) {
        say("sized", [window.innerWidth, width, window.innerHeight - ABOVE, fresh]);
        fresh = false;
      } else {
        say("sized", [window.innerWidth, 0, 0, false]);
      }
    };
    new ResizeObserver(tell).observe(canvas());
    window.addEventListener("resize", tell);
    window.setInterval(triad, 100);
    tell();
  }

  const minus = (a, b) => a.map((v, i) => v - b[i]);
  const plus = (a, b, s = 1) => a.map((v, i) => v + s * b[i]);
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const length = (a) => Math.hypot(...a);
  const unit = (a) => a.map((v) => v / length(a));

  // Which way the axes point in the picture, of bodies in space.
  function triad() {
    const drawing = document.getElementById("triad");
    if (!drawing || !view()) return;
    const camera = view().getCamera();
    const near = unit(minus(camera.position, camera.focalPoint));
    const right = unit(cross(camera.viewUp, near));
    const above = cross(near, right);
    drawing.querySelectorAll("g").forEach((axis, k) => {
      const [x, y] = [22 * right[k], -22 * above[k]];
      const far = 1 + 6 / Math.max(Math.hypot(x, y), 6);
      Object.entries({ x2: x, y2: y }).forEach(([name, value]) => axis.firstChild.setAttribute(name, value));
      Object.entries({ x: far * x, y: far * y }).forEach(([name, value]) => axis.lastChild.setAttribute(name, value));
    });
  }

  function zoom(factor) {
    const camera = view().getCamera();
    const away = minus(camera.position, camera.focalPoint);
    camera.parallelScale /= factor;
    if (!camera.parallelProjection) camera.position = plus(camera.focalPoint, away, 1 / factor);
    view().setCamera(camera);
  }

  function turn(right, up) {
    const camera = view().getCamera();
    const away = minus(camera.position, camera.focalPoint);
    const side = unit(cross(camera.viewUp, away));
    const above = unit(cross(away, side));
    const moved = plus(plus(away, side, right * length(away)), above, up * length(away));
    const kept = unit(moved).map((v) => v * length(away));
    camera.position = plus(camera.focalPoint, kept);
    camera.viewUp = unit(cross(kept, cross(above, kept)));
    view().setCamera(camera);
  }

  async function upload(files) {
    if (!files || !files.length) return;
    const name = encodeURIComponent(files[0].name);
    try {
      await fetch(`upload?name=${name}`, { method: "POST", body: files[0] }); // what is wrong is said on the page
    } catch {
      window.trame.state.set("problem", `${files[0].name} did not get through: does lrsa studio still run?`);
    }
  }

  function save(url, name) {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
  }

  async function png(bars, rows, label) {
    const image = await createImageBitmap(await view().captureImage());
    const scale = window.devicePixelRatio || 1;
    const page = document.createElement("canvas");
    page.width = image.width;
    page.height = image.height;
    const pen = page.getContext("2d");
    pen.drawImage(image, 0, 0);
    const write = (words, x, y, align, weight = 400) => {
      pen.font = `${weight} ${12.5 * scale}px Roboto, sans-serif`;
      pen.textAlign = align;
      pen.fillStyle = "#1c2530";
      pen.fillText(words, x, y);
    };
    bars.forEach((bar, i) => {
      const width = page.width / (rows ? 1 : bars.length);
      const height = page.height / (rows ? bars.length : 1);
      const left = rows ? 0 : i * width;
      const top = rows ? i * height : 0;
      const half = Math.min(0.41 * width, 210 * scale);
      const [from, middle, to] = [-half, 0, half].map((away) => left + width / 2 + away);
      const low = top + height - 10 * scale;
      pen.fillStyle = "rgb(255 255 255 / 85%)";
      pen.fillRect(from - 8 * scale, low - 44 * scale, to - from + 16 * scale, 50 * scale);
      write(bar.title, left + 14 * scale, top + 20 * scale, "left", 500);
      write(label, middle, low - 30 * scale, "center");
      const colours = pen.createLinearGradient(from, 0, to, 0);
      const stops = bar.stops.split(", ");
      stops.forEach((stop, k) => colours.addColorStop(k / (stops.length - 1), stop));
      pen.fillStyle = colours;
      pen.fillRect(from, low - 24 * scale, to - from, 9 * scale);
      [[from, "left"], [middle, "center"], [to, "right"]].forEach(([x, align], k) => write(bar.ends[k], x, low, align));
    });
    page.toBlob((blob) => {
      const url = URL.createObjectURL(blob);
      save(url, "prediction.png");
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    });
  }

  return { press, click, explore, watch, zoom, turn, upload, png, drawn, times };
})();
