// The swizzles of a vec, one row each: written by scripts/make_swizzles.py.
// clang-format off
#pragma once

#define HF_SWIZZLES2 \
  HF_READ2(x, x, r, r) \
  HF_WRITE2(x, y, r, g) \
  HF_WRITE2(y, x, g, r) \
  HF_READ2(y, y, g, g) \
  HF_READ3(x, x, x, r, r, r) \
  HF_READ3(x, x, y, r, r, g) \
  HF_READ3(x, y, x, r, g, r) \
  HF_READ3(x, y, y, r, g, g) \
  HF_READ3(y, x, x, g, r, r) \
  HF_READ3(y, x, y, g, r, g) \
  HF_READ3(y, y, x, g, g, r) \
  HF_READ3(y, y, y, g, g, g) \
  HF_READ4(x, x, x, x, r, r, r, r) \
  HF_READ4(x, x, x, y, r, r, r, g) \
  HF_READ4(x, x, y, x, r, r, g, r) \
  HF_READ4(x, x, y, y, r, r, g, g) \
  HF_READ4(x, y, x, x, r, g, r, r) \
  HF_READ4(x, y, x, y, r, g, r, g) \
  HF_READ4(x, y, y, x, r, g, g, r) \
  HF_READ4(x, y, y, y, r, g, g, g) \
  HF_READ4(y, x, x, x, g, r, r, r) \
  HF_READ4(y, x, x, y, g, r, r, g) \
  HF_READ4(y, x, y, x, g, r, g, r) \
  HF_READ4(y, x, y, y, g, r, g, g) \
  HF_READ4(y, y, x, x, g, g, r, r) \
  HF_READ4(y, y, x, y, g, g, r, g) \
  HF_READ4(y, y, y, x, g, g, g, r) \
  HF_READ4(y, y, y, y, g, g, g, g)

#define HF_SWIZZLES3 \
  HF_READ2(x, x, r, r) \
  HF_WRITE2(x, y, r, g) \
  HF_WRITE2(x, z, r, b) \
  HF_WRITE2(y, x, g, r) \
  HF_READ2(y, y, g, g) \
  HF_WRITE2(y, z, g, b) \
  HF_WRITE2(z, x, b, r) \
  HF_WRITE2(z, y, b, g) \
  HF_READ2(z, z, b, b) \
  HF_READ3(x, x, x, r, r, r) \
  HF_READ3(x, x, y, r, r, g) \
  HF_READ3(x, x, z, r, r, b) \
  HF_READ3(x, y, x, r, g, r) \
  HF_READ3(x, y, y, r, g, g) \
  HF_WRITE3(x, y, z, r, g, b) \
  HF_READ3(x, z, x, r, b, r) \
  HF_WRITE3(x, z, y, r, b, g) \
  HF_READ3(x, z, z, r, b, b) \
  HF_READ3(y, x, x, g, r, r) \
  HF_READ3(y, x, y, g, r, g) \
  HF_WRITE3(y, x, z, g, r, b) \
  HF_READ3(y, y, x, g, g, r) \
  HF_READ3(y, y, y, g, g, g) \
  HF_READ3(y, y, z, g, g, b) \
  HF_WRITE3(y, z, x, g, b, r) \
  HF_READ3(y, z, y, g, b, g) \
  HF_READ3(y, z, z, g, b, b) \
  HF_READ3(z, x, x, b, r, r) \
  HF_WRITE3(z, x, y, b, r, g) \
  HF_READ3(z, x, z, b, r, b) \
  HF_WRITE3(z, y, x, b, g, r) \
  HF_READ3(z, y, y, b, g, g) \
  HF_READ3(z, y, z, b, g, b) \
  HF_READ3(z, z, x, b, b, r) \
  HF_READ3(z, z, y, b, b, g) \
  HF_READ3(z, z, z, b, b, b) \
  HF_READ4(x, x, x, x, r, r, r, r) \
  HF_READ4(x, x, x, y, r, r, r, g) \
  HF_READ4(x, x, x, z, r, r, r, b) \
  HF_READ4(x, x, y, x, r, r, g, r) \
  HF_READ4(x, x, y, y, r, r, g, g) \
  HF_READ4(x, x, y, z, r, r, g, b) \
  HF_READ4(x, x, z, x, r, r, b, r) \
  HF_READ4(x, x, z, y, r, r, b, g) \
  HF_READ4(x, x, z, z, r, r, b, b) \
  HF_READ4(x, y, x, x, r, g, r, r) \
  HF_READ4(x, y, x, y, r, g, r, g) \
  HF_READ4(x, y, x, z, r, g, r, b) \
  HF_READ4(x, y, y, x, r, g, g, r) \
  HF_READ4(x, y, y, y, r, g, g, g) \
  HF_READ4(x, y, y, z, r, g, g, b) \
  HF_READ4(x, y, z, x, r, g, b, r) \
  HF_READ4(x, y, z, y, r, g, b, g) \
  HF_READ4(x, y, z, z, r, g, b, b) \
  HF_READ4(x, z, x, x, r, b, r, r) \
  HF_READ4(x, z, x, y, r, b, r, g) \
  HF_READ4(x, z, x, z, r, b, r, b) \
  HF_READ4(x, z, y, x, r, b, g, r) \
  HF_READ4(x, z, y, y, r, b, g, g) \
  HF_READ4(x, z, y, z, r, b, g, b) \
  HF_READ4(x, z, z, x, r, b, b, r) \
  HF_READ4(x, z, z, y, r, b, b, g) \
  HF_READ4(x, z, z, z, r, b, b, b) \
  HF_READ4(y, x, x, x, g, r, r, r) \
  HF_READ4(y, x, x, y, g, r, r, g) \
  HF_READ4(y, x, x, z, g, r, r, b) \
  HF_READ4(y, x, y, x, g, r, g, r) \
  HF_READ4(y, x, y, y, g, r, g, g) \
  HF_READ4(y, x, y, z, g, r, g, b) \
  HF_READ4(y, x, z, x, g, r, b, r) \
  HF_READ4(y, x, z, y, g, r, b, g) \
  HF_READ4(y, x, z, z, g, r, b, b) \
  HF_READ4(y, y, x, x, g, g, r, r) \
  HF_READ4(y, y, x, y, g, g, r, g) \
  HF_READ4(y, y, x, z, g, g, r, b) \
  HF_READ4(y, y, y, x, g, g, g, r) \
  HF_READ4(y, y, y, y, g, g, g, g) \
  HF_READ4(y, y, y, z, g, g, g, b) \
  HF_READ4(y, y, z, x, g, g, b, r) \
  HF_READ4(y, y, z, y, g, g, b, g) \
  HF_READ4(y, y, z, z, g, g, b, b) \
  HF_READ4(y, z, x, x, g, b, r, r) \
  HF_READ4(y, z, x, y, g, b, r, g) \
  HF_READ4(y, z, x, z, g, b, r, b) \
  HF_READ4(y, z, y, x, g, b, g, r) \
  HF_READ4(y, z, y, y, g, b, g, g) \
  HF_READ4(y, z, y, z, g, b, g, b) \
  HF_READ4(y, z, z, x, g, b, b, r) \
  HF_READ4(y, z, z, y, g, b, b, g) \
  HF_READ4(y, z, z, z, g, b, b, b) \
  HF_READ4(z, x, x, x, b, r, r, r) \
  HF_READ4(z, x, x, y, b, r, r, g) \
  HF_READ4(z, x, x, z, b, r, r, b) \
  HF_READ4(z, x, y, x, b, r, g, r) \
  HF_READ4(z, x, y, y, b, r, g, g) \
  HF_READ4(z, x, y, z, b, r, g, b) \
  HF_READ4(z, x, z, x, b, r, b, r) \
  HF_READ4(z, x, z, y, b, r, b, g) \
  HF_READ4(z, x, z, z, b, r, b, b) \
  HF_READ4(z, y, x, x, b, g, r, r) \
  HF_READ4(z, y, x, y, b, g, r, g) \
  HF_READ4(z, y, x, z, b, g, r, b) \
  HF_READ4(z, y, y, x, b, g, g, r) \
  HF_READ4(z, y, y, y, b, g, g, g) \
  HF_READ4(z, y, y, z, b, g, g, b) \
  HF_READ4(z, y, z, x, b, g, b, r) \
  HF_READ4(z, y, z, y, b, g, b, g) \
  HF_READ4(z, y, z, z, b, g, b, b) \
  HF_READ4(z, z, x, x, b, b, r, r) \
  HF_READ4(z, z, x, y, b, b, r, g) \
  HF_READ4(z, z, x, z, b, b, r, b) \
  HF_READ4(z, z, y, x, b, b, g, r) \
  HF_READ4(z, z, y, y, b, b, g, g) \
  HF_READ4(z, z, y, z, b, b, g, b) \
  HF_READ4(z, z, z, x, b, b, b, r) \
  HF_READ4(z, z, z, y, b, b, b, g) \
  HF_READ4(z, z, z, z, b, b, b, b)

#define HF_SWIZZLES4 \
  HF_READ2(x, x, r, r) \
  HF_WRITE2(x, y, r, g) \
  HF_WRITE2(x, z, r, b) \
  HF_WRITE2(x, w, r, a) \
  HF_WRITE2(y, x, g, r) \
  HF_READ2(y, y, g, g) \
  HF_WRITE2(y, z, g, b) \
  HF_WRITE2(y, w, g, a) \
  HF_WRITE2(z, x, b, r) \
  HF_WRITE2(z, y, b, g) \
  HF_READ2(z, z, b, b) \
  HF_WRITE2(z, w, b, a) \
  HF_WRITE2(w, x, a, r) \
  HF_WRITE2(w, y, a, g) \
  HF_WRITE2(w, z, a, b) \
  HF_READ2(w, w, a, a) \
  HF_READ3(x, x, x, r, r, r) \
  HF_READ3(x, x, y, r, r, g) \
  HF_READ3(x, x, z, r, r, b) \
  HF_READ3(x, x, w, r, r, a) \
  HF_READ3(x, y, x, r, g, r) \
  HF_READ3(x, y, y, r, g, g) \
  HF_WRITE3(x, y, z, r, g, b) \
  HF_WRITE3(x, y, w, r, g, a) \
  HF_READ3(x, z, x, r, b, r) \
  HF_WRITE3(x, z, y, r, b, g) \
  HF_READ3(x, z, z, r, b, b) \
  HF_WRITE3(x, z, w, r, b, a) \
  HF_READ3(x, w, x, r, a, r) \
  HF_WRITE3(x, w, y, r, a, g) \
  HF_WRITE3(x, w, z, r, a, b) \
  HF_READ3(x, w, w, r, a, a) \
  HF_READ3(y, x, x, g, r, r) \
  HF_READ3(y, x, y, g, r, g) \
  HF_WRITE3(y, x, z, g, r, b) \
  HF_WRITE3(y, x, w, g, r, a) \
  HF_READ3(y, y, x, g, g, r) \
  HF_READ3(y, y, y, g, g, g) \
  HF_READ3(y, y, z, g, g, b) \
  HF_READ3(y, y, w, g, g, a) \
  HF_WRITE3(y, z, x, g, b, r) \
  HF_READ3(y, z, y, g, b, g) \
  HF_READ3(y, z, z, g, b, b) \
  HF_WRITE3(y, z, w, g, b, a) \
  HF_WRITE3(y, w, x, g, a, r) \
  HF_READ3(y, w, y, g, a, g) \
  HF_WRITE3(y, w, z, g, a, b) \
  HF_READ3(y, w, w, g, a, a) \
  HF_READ3(z, x, x, b, r, r) \
  HF_WRITE3(z, x, y, b, r, g) \
  HF_READ3(z, x, z, b, r, b) \
  HF_WRITE3(z, x, w, b, r, a) \
  HF_WRITE3(z, y, x, b, g, r) \
  HF_READ3(z, y, y, b, g, g) \
  HF_READ3(z, y, z, b, g, b) \
  HF_WRITE3(z, y, w, b, g, a) \
  HF_READ3(z, z, x, b, b, r) \
  HF_READ3(z, z, y, b, b, g) \
  HF_READ3(z, z, z, b, b, b) \
  HF_READ3(z, z, w, b, b, a) \
  HF_WRITE3(z, w, x, b, a, r) \
  HF_WRITE3(z, w, y, b, a, g) \
  HF_READ3(z, w, z, b, a, b) \
  HF_READ3(z, w, w, b, a, a) \
  HF_READ3(w, x, x, a, r, r) \
  HF_WRITE3(w, x, y, a, r, g) \
  HF_WRITE3(w, x, z, a, r, b) \
  HF_READ3(w, x, w, a, r, a) \
  HF_WRITE3(w, y, x, a, g, r) \
  HF_READ3(w, y, y, a, g, g) \
  HF_WRITE3(w, y, z, a, g, b) \
  HF_READ3(w, y, w, a, g, a) \
  HF_WRITE3(w, z, x, a, b, r) \
  HF_WRITE3(w, z, y, a, b, g) \
  HF_READ3(w, z, z, a, b, b) \
  HF_READ3(w, z, w, a, b, a) \
  HF_READ3(w, w, x, a, a, r) \
  HF_READ3(w, w, y, a, a, g) \
  HF_READ3(w, w, z, a, a, b) \
  HF_READ3(w, w, w, a, a, a) \
  HF_READ4(x, x, x, x, r, r, r, r) \
  HF_READ4(x, x, x, y, r, r, r, g) \
  HF_READ4(x, x, x, z, r, r, r, b) \
  HF_READ4(x, x, x, w, r, r, r, a) \
  HF_READ4(x, x, y, x, r, r, g, r) \
  HF_READ4(x, x, y, y, r, r, g, g) \
  HF_READ4(x, x, y, z, r, r, g, b) \
  HF_READ4(x, x, y, w, r, r, g, a) \
  HF_READ4(x, x, z, x, r, r, b, r) \
  HF_READ4(x, x, z, y, r, r, b, g) \
  HF_READ4(x, x, z, z, r, r, b, b) \
  HF_READ4(x, x, z, w, r, r, b, a) \
  HF_READ4(x, x, w, x, r, r, a, r) \
  HF_READ4(x, x, w, y, r, r, a, g) \
  HF_READ4(x, x, w, z, r, r, a, b) \
  HF_READ4(x, x, w, w, r, r, a, a) \
  HF_READ4(x, y, x, x, r, g, r, r) \
  HF_READ4(x, y, x, y, r, g, r, g) \
  HF_READ4(x, y, x, z, r, g, r, b) \
  HF_READ4(x, y, x, w, r, g, r, a) \
  HF_READ4(x, y, y, x, r, g, g, r) \
  HF_READ4(x, y, y, y, r, g, g, g) \
  HF_READ4(x, y, y, z, r, g, g, b) \
  HF_READ4(x, y, y, w, r, g, g, a) \
  HF_READ4(x, y, z, x, r, g, b, r) \
  HF_READ4(x, y, z, y, r, g, b, g) \
  HF_READ4(x, y, z, z, r, g, b, b) \
  HF_WRITE4(x, y, z, w, r, g, b, a) \
  HF_READ4(x, y, w, x, r, g, a, r) \
  HF_READ4(x, y, w, y, r, g, a, g) \
  HF_WRITE4(x, y, w, z, r, g, a, b) \
  HF_READ4(x, y, w, w, r, g, a, a) \
  HF_READ4(x, z, x, x, r, b, r, r) \
  HF_READ4(x, z, x, y, r, b, r, g) \
  HF_READ4(x, z, x, z, r, b, r, b) \
  HF_READ4(x, z, x, w, r, b, r, a) \
  HF_READ4(x, z, y, x, r, b, g, r) \
  HF_READ4(x, z, y, y, r, b, g, g) \
  HF_READ4(x, z, y, z, r, b, g, b) \
  HF_WRITE4(x, z, y, w, r, b, g, a) \
  HF_READ4(x, z, z, x, r, b, b, r) \
  HF_READ4(x, z, z, y, r, b, b, g) \
  HF_READ4(x, z, z, z, r, b, b, b) \
  HF_READ4(x, z, z, w, r, b, b, a) \
  HF_READ4(x, z, w, x, r, b, a, r) \
  HF_WRITE4(x, z, w, y, r, b, a, g) \
  HF_READ4(x, z, w, z, r, b, a, b) \
  HF_READ4(x, z, w, w, r, b, a, a) \
  HF_READ4(x, w, x, x, r, a, r, r) \
  HF_READ4(x, w, x, y, r, a, r, g) \
  HF_READ4(x, w, x, z, r, a, r, b) \
  HF_READ4(x, w, x, w, r, a, r, a) \
  HF_READ4(x, w, y, x, r, a, g, r) \
  HF_READ4(x, w, y, y, r, a, g, g) \
  HF_WRITE4(x, w, y, z, r, a, g, b) \
  HF_READ4(x, w, y, w, r, a, g, a) \
  HF_READ4(x, w, z, x, r, a, b, r) \
  HF_WRITE4(x, w, z, y, r, a, b, g) \
  HF_READ4(x, w, z, z, r, a, b, b) \
  HF_READ4(x, w, z, w, r, a, b, a) \
  HF_READ4(x, w, w, x, r, a, a, r) \
  HF_READ4(x, w, w, y, r, a, a, g) \
  HF_READ4(x, w, w, z, r, a, a, b) \
  HF_READ4(x, w, w, w, r, a, a, a) \
  HF_READ4(y, x, x, x, g, r, r, r) \
  HF_READ4(y, x, x, y, g, r, r, g) \
  HF_READ4(y, x, x, z, g, r, r, b) \
  HF_READ4(y, x, x, w, g, r, r, a) \
  HF_READ4(y, x, y, x, g, r, g, r) \
  HF_READ4(y, x, y, y, g, r, g, g) \
  HF_READ4(y, x, y, z, g, r, g, b) \
  HF_READ4(y, x, y, w, g, r, g, a) \
  HF_READ4(y, x, z, x, g, r, b, r) \
  HF_READ4(y, x, z, y, g, r, b, g) \
  HF_READ4(y, x, z, z, g, r, b, b) \
  HF_WRITE4(y, x, z, w, g, r, b, a) \
  HF_READ4(y, x, w, x, g, r, a, r) \
  HF_READ4(y, x, w, y, g, r, a, g) \
  HF_WRITE4(y, x, w, z, g, r, a, b) \
  HF_READ4(y, x, w, w, g, r, a, a) \
  HF_READ4(y, y, x, x, g, g, r, r) \
  HF_READ4(y, y, x, y, g, g, r, g) \
  HF_READ4(y, y, x, z, g, g, r, b) \
  HF_READ4(y, y, x, w, g, g, r, a) \
  HF_READ4(y, y, y, x, g, g, g, r) \
  HF_READ4(y, y, y, y, g, g, g, g) \
  HF_READ4(y, y, y, z, g, g, g, b) \
  HF_READ4(y, y, y, w, g, g, g, a) \
  HF_READ4(y, y, z, x, g, g, b, r) \
  HF_READ4(y, y, z, y, g, g, b, g) \
  HF_READ4(y, y, z, z, g, g, b, b) \
  HF_READ4(y, y, z, w, g, g, b, a) \
  HF_READ4(y, y, w, x, g, g, a, r) \
  HF_READ4(y, y, w, y, g, g, a, g) \
  HF_READ4(y, y, w, z, g, g, a, b) \
  HF_READ4(y, y, w, w, g, g, a, a) \
  HF_READ4(y, z, x, x, g, b, r, r) \
  HF_READ4(y, z, x, y, g, b, r, g) \
  HF_READ4(y, z, x, z, g, b, r, b) \
  HF_WRITE4(y, z, x, w, g, b, r, a) \
  HF_READ4(y, z, y, x, g, b, g, r) \
  HF_READ4(y, z, y, y, g, b, g, g) \
  HF_READ4(y, z, y, z, g, b, g, b) \
  HF_READ4(y, z, y, w, g, b, g, a) \
  HF_READ4(y, z, z, x, g, b, b, r) \
  HF_READ4(y, z, z, y, g, b, b, g) \
  HF_READ4(y, z, z, z, g, b, b, b) \
  HF_READ4(y, z, z, w, g, b, b, a) \
  HF_WRITE4(y, z, w, x, g, b, a, r) \
  HF_READ4(y, z, w, y, g, b, a, g) \
  HF_READ4(y, z, w, z, g, b, a, b) \
  HF_READ4(y, z, w, w, g, b, a, a) \
  HF_READ4(y, w, x, x, g, a, r, r) \
  HF_READ4(y, w, x, y, g, a, r, g) \
  HF_WRITE4(y, w, x, z, g, a, r, b) \
  HF_READ4(y, w, x, w, g, a, r, a) \
  HF_READ4(y, w, y, x, g, a, g, r) \
  HF_READ4(y, w, y, y, g, a, g, g) \
  HF_READ4(y, w, y, z, g, a, g, b) \
  HF_READ4(y, w, y, w, g, a, g, a) \
  HF_WRITE4(y, w, z, x, g, a, b, r) \
  HF_READ4(y, w, z, y, g, a, b, g) \
  HF_READ4(y, w, z, z, g, a, b, b) \
  HF_READ4(y, w, z, w, g, a, b, a) \
  HF_READ4(y, w, w, x, g, a, a, r) \
  HF_READ4(y, w, w, y, g, a, a, g) \
  HF_READ4(y, w, w, z, g, a, a, b) \
  HF_READ4(y, w, w, w, g, a, a, a) \
  HF_READ4(z, x, x, x, b, r, r, r) \
  HF_READ4(z, x, x, y, b, r, r, g) \
  HF_READ4(z, x, x, z, b, r, r, b) \
  HF_READ4(z, x, x, w, b, r, r, a) \
  HF_READ4(z, x, y, x, b, r, g, r) \
  HF_READ4(z, x, y, y, b, r, g, g) \
  HF_READ4(z, x, y, z, b, r, g, b) \
  HF_WRITE4(z, x, y, w, b, r, g, a) \
  HF_READ4(z, x, z, x, b, r, b, r) \
  HF_READ4(z, x, z, y, b, r, b, g) \
  HF_READ4(z, x, z, z, b, r, b, b) \
  HF_READ4(z, x, z, w, b, r, b, a) \
  HF_READ4(z, x, w, x, b, r, a, r) \
  HF_WRITE4(z, x, w, y, b, r, a, g) \
  HF_READ4(z, x, w, z, b, r, a, b) \
  HF_READ4(z, x, w, w, b, r, a, a) \
  HF_READ4(z, y, x, x, b, g, r, r) \
  HF_READ4(z, y, x, y, b, g, r, g) \
  HF_READ4(z, y, x, z, b, g, r, b) \
  HF_WRITE4(z, y, x, w, b, g, r, a) \
  HF_READ4(z, y, y, x, b, g, g, r) \
  HF_READ4(z, y, y, y, b, g, g, g) \
  HF_READ4(z, y, y, z, b, g, g, b) \
  HF_READ4(z, y, y, w, b, g, g, a) \
  HF_READ4(z, y, z, x, b, g, b, r) \
  HF_READ4(z, y, z, y, b, g, b, g) \
  HF_READ4(z, y, z, z, b, g, b, b) \
  HF_READ4(z, y, z, w, b, g, b, a) \
  HF_WRITE4(z, y, w, x, b, g, a, r) \
  HF_READ4(z, y, w, y, b, g, a, g) \
  HF_READ4(z, y, w, z, b, g, a, b) \
  HF_READ4(z, y, w, w, b, g, a, a) \
  HF_READ4(z, z, x, x, b, b, r, r) \
  HF_READ4(z, z, x, y, b, b, r, g) \
  HF_READ4(z, z, x, z, b, b, r, b) \
  HF_READ4(z, z, x, w, b, b, r, a) \
  HF_READ4(z, z, y, x, b, b, g, r) \
  HF_READ4(z, z, y, y, b, b, g, g) \
  HF_READ4(z, z, y, z, b, b, g, b) \
  HF_READ4(z, z, y, w, b, b, g, a) \
  HF_READ4(z, z, z, x, b, b, b, r) \
  HF_READ4(z, z, z, y, b, b, b, g) \
  HF_READ4(z, z, z, z, b, b, b, b) \
  HF_READ4(z, z, z, w, b, b, b, a) \
  HF_READ4(z, z, w, x, b, b, a, r) \
  HF_READ4(z, z, w, y, b, b, a, g) \
  HF_READ4(z, z, w, z, b, b, a, b) \
  HF_READ4(z, z, w, w, b, b, a, a) \
  HF_READ4(z, w, x, x, b, a, r, r) \
  HF_WRITE4(z, w, x, y, b, a, r, g) \
  HF_READ4(z, w, x, z, b, a, r, b) \
  HF_READ4(z, w, x, w, b, a, r, a) \
  HF_WRITE4(z, w, y, x, b, a, g, r) \
  HF_READ4(z, w, y, y, b, a, g, g) \
  HF_READ4(z, w, y, z, b, a, g, b) \
  HF_READ4(z, w, y, w, b, a, g, a) \
  HF_READ4(z, w, z, x, b, a, b, r) \
  HF_READ4(z, w, z, y, b, a, b, g) \
  HF_READ4(z, w, z, z, b, a, b, b) \
  HF_READ4(z, w, z, w, b, a, b, a) \
  HF_READ4(z, w, w, x, b, a, a, r) \
  HF_READ4(z, w, w, y, b, a, a, g) \
  HF_READ4(z, w, w, z, b, a, a, b) \
  HF_READ4(z, w, w, w, b, a, a, a) \
  HF_READ4(w, x, x, x, a, r, r, r) \
  HF_READ4(w, x, x, y, a, r, r, g) \
  HF_READ4(w, x, x, z, a, r, r, b) \
  HF_READ4(w, x, x, w, a, r, r, a) \
  HF_READ4(w, x, y, x, a, r, g, r) \
  HF_READ4(w, x, y, y, a, r, g, g) \
  HF_WRITE4(w, x, y, z, a, r, g, b) \
  HF_READ4(w, x, y, w, a, r, g, a) \
  HF_READ4(w, x, z, x, a, r, b, r) \
  HF_WRITE4(w, x, z, y, a, r, b, g) \
  HF_READ4(w, x, z, z, a, r, b, b) \
  HF_READ4(w, x, z, w, a, r, b, a) \
  HF_READ4(w, x, w, x, a, r, a, r) \
  HF_READ4(w, x, w, y, a, r, a, g) \
  HF_READ4(w, x, w, z, a, r, a, b) \
  HF_READ4(w, x, w, w, a, r, a, a) \
  HF_READ4(w, y, x, x, a, g, r, r) \
  HF_READ4(w, y, x, y, a, g, r, g) \
  HF_WRITE4(w, y, x, z, a, g, r, b) \
  HF_READ4(w, y, x, w, a, g, r, a) \
  HF_READ4(w, y, y, x, a, g, g, r) \
  HF_READ4(w, y, y, y, a, g, g, g) \
  HF_READ4(w, y, y, z, a, g, g, b) \
  HF_READ4(w, y, y, w, a, g, g, a) \
  HF_WRITE4(w, y, z, x, a, g, b, r) \
  HF_READ4(w, y, z, y, a, g, b, g) \
  HF_READ4(w, y, z, z, a, g, b, b) \
  HF_READ4(w, y, z, w, a, g, b, a) \
  HF_READ4(w, y, w, x, a, g, a, r) \
  HF_READ4(w, y, w, y, a, g, a, g) \
  HF_READ4(w, y, w, z, a, g, a, b) \
  HF_READ4(w, y, w, w, a, g, a, a) \
  HF_READ4(w, z, x, x, a, b, r, r) \
  HF_WRITE4(w, z, x, y, a, b, r, g) \
  HF_READ4(w, z, x, z, a, b, r, b) \
  HF_READ4(w, z, x, w, a, b, r, a) \
  HF_WRITE4(w, z, y, x, a, b, g, r) \
  HF_READ4(w, z, y, y, a, b, g, g) \
  HF_READ4(w, z, y, z, a, b, g, b) \
  HF_READ4(w, z, y, w, a, b, g, a) \
  HF_READ4(w, z, z, x, a, b, b, r) \
  HF_READ4(w, z, z, y, a, b, b, g) \
  HF_READ4(w, z, z, z, a, b, b, b) \
  HF_READ4(w, z, z, w, a, b, b, a) \
  HF_READ4(w, z, w, x, a, b, a, r) \
  HF_READ4(w, z, w, y, a, b, a, g) \
  HF_READ4(w, z, w, z, a, b, a, b) \
  HF_READ4(w, z, w, w, a, b, a, a) \
  HF_READ4(w, w, x, x, a, a, r, r) \
  HF_READ4(w, w, x, y, a, a, r, g) \
  HF_READ4(w, w, x, z, a, a, r, b) \
  HF_READ4(w, w, x, w, a, a, r, a) \
  HF_READ4(w, w, y, x, a, a, g, r) \
  HF_READ4(w, w, y, y, a, a, g, g) \
  HF_READ4(w, w, y, z, a, a, g, b) \
  HF_READ4(w, w, y, w, a, a, g, a) \
  HF_READ4(w, w, z, x, a, a, b, r) \
  HF_READ4(w, w, z, y, a, a, b, g) \
  HF_READ4(w, w, z, z, a, a, b, b) \
  HF_READ4(w, w, z, w, a, a, b, a) \
  HF_READ4(w, w, w, x, a, a, a, r) \
  HF_READ4(w, w, w, y, a, a, a, g) \
  HF_READ4(w, w, w, z, a, a, a, b) \
  HF_READ4(w, w, w, w, a, a, a, a)
