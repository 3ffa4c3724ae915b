// The reference lowering against plain C++.
#include <doctest/doctest.h>

#include <climits>
#include <cmath>
#include <cstring>
#include <numeric>

#include "jit/kernel_testing.h"

using namespace holdfast;
using namespace holdfast::jit;
using namespace holdfast::jit::testing;

namespace {

Ref<CpuPipeline> reference(const std::string& text, InstructionSet set = host_instruction_set()) {
  return load_ir(text, Lowering::reference, set);
}

// %i: the thread's index in a grid of one dimension.
const char* const index_of_thread = R"(
  %tid = call i32 @__hf_thread_position_in_threadgroup(i32 0)
  %group = call i32 @__hf_threadgroup_position_in_grid(i32 0)
  %size = call i32 @__hf_dispatch_threads_per_threadgroup(i32 0)
  %base = mul i32 %group, %size
  %i = add i32 %base, %tid
  %i64 = zext i32 %i to i64
)";

}  // namespace

TEST_CASE("reference: every instruction set runs a plain kernel") {
  std::string text =
      std::string("define void @kernel(ptr addrspace(1) %in, ptr addrspace(1) %out) {") +
      index_of_thread + R"(
    %from = getelementptr float, ptr addrspace(1) %in, i64 %i64
    %to = getelementptr float, ptr addrspace(1) %out, i64 %i64
    %x = load float, ptr addrspace(1) %from
    %y = fmul float %x, 3.0
    %z = fadd float %y, 1.0
    store float %z, ptr addrspace(1) %to
    ret void
  })";
  for (InstructionSet set : instruction_sets()) {
    CAPTURE(instruction_set_name(set));
    std::vector<float> in(1000), out(1000, -1);
    std::iota(in.begin(), in.end(), 0.0f);
    run(*reference(text, set), {in.data(), out.data()}, {1000, 1, 1}, {96, 1, 1});
    for (size_t i = 0; i < in.size(); ++i) REQUIRE(out[i] == in[i] * 3 + 1);
  }
}

TEST_CASE("reference: positions and sizes in three dimensions, with partial groups") {
  std::string text = R"(define void @kernel(ptr addrspace(1) %out) {
    %x = call i32 @__hf_thread_position_in_threadgroup(i32 0)
    %y = call i32 @__hf_thread_position_in_threadgroup(i32 1)
    %z = call i32 @__hf_thread_position_in_threadgroup(i32 2)
    %gx = call i32 @__hf_threadgroup_position_in_grid(i32 0)
    %gy = call i32 @__hf_threadgroup_position_in_grid(i32 1)
    %gz = call i32 @__hf_threadgroup_position_in_grid(i32 2)
    %fx = call i32 @__hf_dispatch_threads_per_threadgroup(i32 0)
    %fy = call i32 @__hf_dispatch_threads_per_threadgroup(i32 1)
    %fz = call i32 @__hf_dispatch_threads_per_threadgroup(i32 2)
    %nx = call i32 @__hf_threads_per_grid(i32 0)
    %ny = call i32 @__hf_threads_per_grid(i32 1)
    %bx = mul i32 %gx, %fx
    %px = add i32 %bx, %x
    %by = mul i32 %gy, %fy
    %py = add i32 %by, %y
    %bz = mul i32 %gz, %fz
    %pz = add i32 %bz, %z
    %row = mul i32 %pz, %ny
    %row2 = add i32 %row, %py
    %line = mul i32 %row2, %nx
    %i = add i32 %line, %px
    %lane = call i32 @__hf_thread_index_in_simdgroup()
    %simdgroup = call i32 @__hf_simdgroup_index_in_threadgroup()
    %count = call i32 @__hf_simdgroups_per_threadgroup()
    %sx = call i32 @__hf_threads_per_threadgroup(i32 0)
    %groups = call i32 @__hf_threadgroups_per_grid(i32 1)
    %i64 = zext i32 %i to i64
    %to = getelementptr [5 x i32], ptr addrspace(1) %out, i64 %i64
    store i32 %lane, ptr addrspace(1) %to
    %to1 = getelementptr i32, ptr addrspace(1) %to, i64 1
    store i32 %simdgroup, ptr addrspace(1) %to1
    %to2 = getelementptr i32, ptr addrspace(1) %to, i64 2
    store i32 %count, ptr addrspace(1) %to2
    %to3 = getelementptr i32, ptr addrspace(1) %to, i64 3
    store i32 %sx, ptr addrspace(1) %to3
    %to4 = getelementptr i32, ptr addrspace(1) %to, i64 4
    store i32 %groups, ptr addrspace(1) %to4
    ret void
  })";
  Size grid{7, 5, 3}, asked{4, 9, 2};  // 9 is clamped to 5
  std::vector<std::array<uint32_t, 5>> out(7 * 5 * 3);
  run(*reference(text), {out.data()}, grid, asked);
  for (uint32_t z = 0; z < 3; ++z) {
    for (uint32_t y = 0; y < 5; ++y) {
      for (uint32_t x = 0; x < 7; ++x) {
        uint32_t sx = x < 4 ? 4 : 3, sz = z < 2 ? 2 : 1;
        uint32_t index = x % 4 + y * sx + z % 2 * sx * 5;
        const auto& seen = out[(z * 5 + y) * 7 + x];
        CHECK(seen ==
              std::array<uint32_t, 5>{index % 32, index / 32, (sx * 5 * sz + 31) / 32, sx, 1});
      }
    }
  }
}

TEST_CASE("reference: barriers make threadgroup memory visible; partial groups wait for less") {
  // Each thread shows its value to the thread opposite, twice.
  std::string text = std::string("@shared = internal addrspace(3) global [256 x i32] undef\n") +
                     "define void @kernel(ptr addrspace(1) %out, ptr addrspace(3) %second) {" +
                     index_of_thread + R"(
    %n = call i32 @__hf_threads_per_threadgroup(i32 0)
    %last = sub i32 %n, 1
    %other = sub i32 %last, %tid
    %mine = getelementptr i32, ptr addrspace(3) @shared, i32 %tid
    store i32 %i, ptr addrspace(3) %mine
    call void @__hf_threadgroup_barrier(i32 0)
    %theirs = getelementptr i32, ptr addrspace(3) @shared, i32 %other
    %seen = load i32, ptr addrspace(3) %theirs
    %mine2 = getelementptr i32, ptr addrspace(3) %second, i32 %tid
    store i32 %seen, ptr addrspace(3) %mine2
    call void @__hf_threadgroup_barrier(i32 2)
    %theirs2 = getelementptr i32, ptr addrspace(3) %second, i32 %other
    %again = load i32, ptr addrspace(3) %theirs2
    %both = shl i32 %again, 16
    %sum = or i32 %both, %seen
    %to = getelementptr i32, ptr addrspace(1) %out, i64 %i64
    store i32 %sum, ptr addrspace(1) %to
    ret void
  })";
  CompiledKernel kernel = compile_ir(text, Lowering::reference, host_instruction_set());
  CHECK(kernel.threadgroup_bytes == 1024);
  CHECK(kernel.register_bytes > 0);
  Ref<CpuPipeline> pipeline = CpuPipeline::load("kernel", std::move(kernel));
  uint32_t total = 600, group = 200;
  std::vector<uint32_t> out(total);
  for (uint32_t grid : {600u, 450u, 33u}) {
    run(*pipeline, {out.data(), nullptr}, {grid, 1, 1}, {group, 1, 1}, {0, 1024});
    for (uint32_t i = 0; i < grid; ++i) {
      uint32_t full = std::min(group, grid), base = i / full * full;
      uint32_t n = std::min(full, grid - base);
      REQUIRE(out[i] == (i << 16 | (base + n - 1 - (i - base))));
    }
  }
}

TEST_CASE("reference: cross-lane operations see active lanes only") {
  // Lanes below 20 sum; of the rest those above 25 return first; then all that are left sum.
  std::string text =
      std::string("define void @kernel(ptr addrspace(1) %out, ptr addrspace(1) %out2) {") +
      index_of_thread + R"(
    %lane = call i32 @__hf_thread_index_in_simdgroup()
    %to = getelementptr i32, ptr addrspace(1) %out, i64 %i64
    %to2 = getelementptr i32, ptr addrspace(1) %out2, i64 %i64
    %low = icmp ult i32 %lane, 20
    br i1 %low, label %then, label %else
  then:
    %a = call i32 @__hf_reduce_add_u32(i32 %i)
    br label %join
  else:
    %high = icmp ugt i32 %lane, 25
    br i1 %high, label %gone, label %stay
  gone:
    store i32 7, ptr addrspace(1) %to
    ret void
  stay:
    %b = call i32 @__hf_ballot(i32 1)
    br label %join
  join:
    %v = phi i32 [ %a, %then ], [ %b, %stay ]
    store i32 %v, ptr addrspace(1) %to
    %up = call i32 @__hf_shuffle_down_u32(i32 %i, i32 3)
    %all = call i32 @__hf_reduce_add_u32(i32 1)
    %shifted = shl i32 %all, 16
    %r = or i32 %shifted, %up
    store i32 %r, ptr addrspace(1) %to2
    ret void
  })";
  std::vector<uint32_t> out(84), out2(84);
  run(*reference(text), {out.data(), out2.data()}, {84, 1, 1}, {64, 1, 1});
  for (uint32_t i = 0; i < 84; ++i) {
    CAPTURE(i);
    uint32_t lane = i % 32, base = i - lane;
    uint32_t lanes = std::min(32u, 84 - base);  // the last simdgroup has 20
    if (lane < 20) {
      REQUIRE(out[i] == base * 20 + 190);
    } else if (lane > 25) {
      REQUIRE(out[i] == 7);
      REQUIRE(out2[i] == 0);
      continue;
    } else {
      REQUIRE(out[i] == 0x3f00000u);
    }
    uint32_t left = std::min(lanes, 26u);
    REQUIRE(out2[i] == (left << 16 | (lane + 3 < left ? i + 3 : i)));
  }
}

TEST_CASE(
    "reference: lanes of one iteration belong together, whatever way they take through a loop") {
  // for (k = 0; k < lane; ++k) { if (k + lane odd) { s += sum(1); continue; } s += 100 * sum(1); }
  std::string text =
      std::string("define void @kernel(ptr addrspace(1) %out) {\nentry:") + index_of_thread + R"(
    %lane = call i32 @__hf_thread_index_in_simdgroup()
    %none = icmp eq i32 %lane, 0
    br i1 %none, label %exit, label %loop
  loop:
    %k = phi i32 [ 0, %entry ], [ %k1, %odd ], [ %k1, %even ]
    %s = phi i32 [ 0, %entry ], [ %so, %odd ], [ %se, %even ]
    %k1 = add i32 %k, 1
    %kl = add i32 %k, %lane
    %bit = and i32 %kl, 1
    %is = icmp eq i32 %bit, 1
    %more = icmp ult i32 %k1, %lane
    br i1 %is, label %first, label %second
  first:
    %a = call i32 @__hf_reduce_add_u32(i32 1)
    %so = add i32 %s, %a
    br label %odd
  odd:
    br i1 %more, label %loop, label %exit
  second:
    %b = call i32 @__hf_reduce_add_u32(i32 1)
    %b100 = mul i32 %b, 100
    %se = add i32 %s, %b100
    br label %even
  even:
    br i1 %more, label %loop, label %exit
  exit:
    %r = phi i32 [ 0, %entry ], [ %so, %odd ], [ %se, %even ]
    %total = call i32 @__hf_reduce_add_u32(i32 1)
    %t = mul i32 %total, 1000000
    %rt = add i32 %r, %t
    %to = getelementptr i32, ptr addrspace(1) %out, i64 %i64
    store i32 %rt, ptr addrspace(1) %to
    ret void
  })";
  std::vector<uint32_t> out(32);
  run(*reference(text), {out.data()}, {32, 1, 1}, {32, 1, 1});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t expected = 32 * 1000000;
    for (uint32_t k = 0; k < lane; ++k) {
      uint32_t together = 0;
      for (uint32_t other = k + 1; other < 32; ++other) together += (other + lane) % 2 == 0;
      expected += (k + lane) % 2 == 1 ? together : 100 * together;
    }
    CHECK(out[lane] == expected);
  }
}

TEST_CASE("reference: reductions of floats keep the butterfly's order") {
  std::string text =
      std::string("define void @kernel(ptr addrspace(1) %in, ptr addrspace(1) %out) {") +
      index_of_thread + R"(
    %from = getelementptr float, ptr addrspace(1) %in, i64 %i64
    %to = getelementptr float, ptr addrspace(1) %out, i64 %i64
    %x = load float, ptr addrspace(1) %from
    %y = call float @__hf_reduce_add_f32(float %x)
    %m = call float @__hf_reduce_max_f32(float %x)
    %z = fadd float %y, %m
    store float %z, ptr addrspace(1) %to
    ret void
  })";
  std::vector<float> in(45), out(45);
  for (size_t i = 0; i < in.size(); ++i) in[i] = std::sin(static_cast<float>(i)) * 1e3f;
  in[3] = NAN;
  in[3] = 0.1f;
  run(*reference(text), {in.data(), out.data()}, {45, 1, 1}, {64, 1, 1});
  for (size_t first : {size_t{0}, size_t{32}}) {
    float v[32], greatest = -INFINITY;
    for (size_t i = 0; i < 32; ++i) v[i] = first + i < in.size() ? in[first + i] : 0;
    for (size_t i = first; i < std::min(first + 32, in.size()); ++i)
      greatest = std::max(greatest, in[i]);
    for (size_t distance = 16; distance > 0; distance /= 2) {
      float next[32];
      for (size_t i = 0; i < 32; ++i) next[i] = v[i] + v[i ^ distance];
      std::memcpy(v, next, sizeof(v));
    }
    for (size_t i = first; i < std::min(first + 32, in.size()); ++i)
      REQUIRE(out[i] == v[0] + greatest);
  }
}

TEST_CASE("reference: matrices multiply in the layout of simdgroup_matrix") {
  std::string text = std::string(
                         "define void @kernel(ptr addrspace(1) %a, ptr addrspace(1) %b, "
                         "ptr addrspace(1) %out) {") +
                     index_of_thread + R"(
    %pa = getelementptr [2 x float], ptr addrspace(1) %a, i64 %i64
    %pa1 = getelementptr float, ptr addrspace(1) %pa, i64 1
    %pb = getelementptr [2 x float], ptr addrspace(1) %b, i64 %i64
    %pb1 = getelementptr float, ptr addrspace(1) %pb, i64 1
    %po = getelementptr [2 x float], ptr addrspace(1) %out, i64 %i64
    %po1 = getelementptr float, ptr addrspace(1) %po, i64 1
    %a0 = load float, ptr addrspace(1) %pa
    %a1 = load float, ptr addrspace(1) %pa1
    %b0 = load float, ptr addrspace(1) %pb
    %b1 = load float, ptr addrspace(1) %pb1
    %r0 = call float @__hf_matrix_multiply_accumulate_f32(float %a0, float %a1, float %b0, float %b1, float 1.0, float 2.0, i32 0)
    %r1 = call float @__hf_matrix_multiply_accumulate_f32(float %a0, float %a1, float %b0, float %b1, float 1.0, float 2.0, i32 1)
    store float %r0, ptr addrspace(1) %po
    store float %r1, ptr addrspace(1) %po1
    ret void
  })";
  float a[8][8], b[8][8];
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      a[i][j] = static_cast<float>(i * 3 - j);
      b[i][j] = static_cast<float>(j * 5 - i * i);
    }
  }
  std::array<float, 64> fa, fb, out;
  auto place = [](uint32_t lane, uint32_t& row, uint32_t& column) {
    uint32_t q = lane / 4;
    row = (q & 4) + lane / 2 % 4;
    column = (q & 2) * 2 + lane % 2 * 2;
  };
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t row, column;
    place(lane, row, column);
    for (uint32_t e = 0; e < 2; ++e) {
      fa[lane * 2 + e] = a[row][column + e];
      fb[lane * 2 + e] = b[row][column + e];
    }
  }
  run(*reference(text), {fa.data(), fb.data(), out.data()}, {32, 1, 1}, {32, 1, 1});
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t row, column;
    place(lane, row, column);
    for (uint32_t e = 0; e < 2; ++e) {
      float sum = e == 0 ? 1.0f : 2.0f;
      for (int k = 0; k < 8; ++k) sum += a[row][k] * b[k][column + e];
      REQUIRE(out[lane * 2 + e] == sum);
    }
  }
}

TEST_CASE("reference: a barrier that not all threads reach does not hang") {
  std::string text =
      std::string("define void @kernel(ptr addrspace(1) %out) {") + index_of_thread + R"(
    %odd = and i32 %tid, 1
    %is = icmp eq i32 %odd, 1
    br i1 %is, label %one, label %two
  one:
    call void @__hf_threadgroup_barrier(i32 0)
    br label %join
  two:
    call void @__hf_threadgroup_barrier(i32 0)
    call void @__hf_threadgroup_barrier(i32 0)
    br label %join
  join:
    call void @__hf_simdgroup_barrier(i32 0)
    %n = call i32 @__hf_reduce_add_u32(i32 1)
    %to = getelementptr i32, ptr addrspace(1) %out, i64 %i64
    store i32 %n, ptr addrspace(1) %to
    ret void
  })";
  std::vector<uint32_t> out(100);
  run(*reference(text), {out.data()}, {100, 1, 1}, {100, 1, 1});
  for (uint32_t i = 0; i < 100; ++i) CHECK(out[i] == (i < 96 ? 32 : 4));
}

TEST_CASE("reference: what C++ leaves undefined is defined") {
  std::string text = std::string(
                         "define void @kernel(ptr addrspace(1) %a, ptr addrspace(1) %b, "
                         "ptr addrspace(1) %f, ptr addrspace(1) %out) {") +
                     index_of_thread + R"(
    %pa = getelementptr i32, ptr addrspace(1) %a, i64 %i64
    %pb = getelementptr i32, ptr addrspace(1) %b, i64 %i64
    %pf = getelementptr float, ptr addrspace(1) %f, i64 %i64
    %x = load i32, ptr addrspace(1) %pa
    %y = load i32, ptr addrspace(1) %pb
    %z = load float, ptr addrspace(1) %pf
    %sd = sdiv i32 %x, %y
    %sr = srem i32 %x, %y
    %ud = udiv i32 %x, %y
    %ur = urem i32 %x, %y
    %sl = shl i32 %x, %y
    %sh = ashr i32 %x, %y
    %fi = fptosi float %z to i32
    %fu = fptoui float %z to i32
    %o = getelementptr [8 x i32], ptr addrspace(1) %out, i64 %i64
    store i32 %sd, ptr addrspace(1) %o
    %o1 = getelementptr i32, ptr addrspace(1) %o, i64 1
    store i32 %sr, ptr addrspace(1) %o1
    %o2 = getelementptr i32, ptr addrspace(1) %o, i64 2
    store i32 %ud, ptr addrspace(1) %o2
    %o3 = getelementptr i32, ptr addrspace(1) %o, i64 3
    store i32 %ur, ptr addrspace(1) %o3
    %o4 = getelementptr i32, ptr addrspace(1) %o, i64 4
    store i32 %sl, ptr addrspace(1) %o4
    %o5 = getelementptr i32, ptr addrspace(1) %o, i64 5
    store i32 %sh, ptr addrspace(1) %o5
    %o6 = getelementptr i32, ptr addrspace(1) %o, i64 6
    store i32 %fi, ptr addrspace(1) %o6
    %o7 = getelementptr i32, ptr addrspace(1) %o, i64 7
    store i32 %fu, ptr addrspace(1) %o7
    ret void
  })";
  int32_t a[] = {7, -7, INT_MIN, 5, INT_MIN}, b[] = {0, 0, -1, 35, 3};
  float f[] = {NAN, 1e20f, -1e20f, 3.9f, -0.9f};
  int32_t out[5][8];
  for (InstructionSet set : instruction_sets()) {
    run(*reference(text, set), {a, b, f, out}, {5, 1, 1}, {5, 1, 1});
    auto u = [](auto value) { return static_cast<int32_t>(value); };
    int32_t expected[5][8] = {
        {0, 7, 0, 7, 7, 7, 0, 0},
        {0, -7, 0, -7, -7, -7, INT_MAX, u(UINT_MAX)},
        {INT_MIN, 0, 0, INT_MIN, 0, -1, INT_MIN, 0},
        {0, 5, 0, 5, 40, 0, 3, 3},
        {INT_MIN / 3, INT_MIN % 3, u(0x80000000u / 3), u(0x80000000u % 3), 0, INT_MIN >> 3, 0, 0}};
    for (int i = 0; i < 5; ++i) {
      for (int k = 0; k < 8; ++k) {
        CAPTURE(i);
        CAPTURE(k);
        CHECK(out[i][k] == expected[i][k]);
      }
    }
  }
}
