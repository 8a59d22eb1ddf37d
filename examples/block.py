"""The operator as a torch module: padded batches, quadrature weights, other points, any number of points."""

import torch

import lrsa

model = lrsa.LRSA(coord_dim=3, in_features=2, out_features=1, width=64, depth=4, heads=4, rank=32)

# Two clouds of different size in one padded batch: the mask tells real points from padding.
x, f = torch.rand(2, 1000, 3), torch.rand(2, 1000, 2)
mask = torch.arange(1000) < torch.tensor([[1000], [700]])
u = model(x, f, lrsa.Context(mask=mask))  # (2, 1000, 1)

# Unevenly spread points: weights say how much of the domain each one stands for.
u = model(x, f, lrsa.Context(mask=mask, weights=torch.rand(2, 1000)))

# Encode once, decode anywhere: the query points need only features of their own.
state = model.encode(x, f)
queries, features = torch.rand(2, 50, 3), torch.rand(2, 50, 2)
print("at 50 other points:", tuple(model.decode(state, queries, features).shape))

# Many points, little memory, the same result.
with torch.no_grad():
    whole, streamed = model(x, f), lrsa.stream(model, x, f, chunk=128)
print("streamed equals whole to", f"{(whole - streamed).abs().max():.1e}")
