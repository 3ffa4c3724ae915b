// Kernels that do something wrong, and twins of them that do not. 128 threads in two groups; `x`
// has 128 floats, `out` 128 that nobody has written. A body begins on line 2.
#include "base/environment.h"
#include "validation/cases.h"

namespace holdfast::testing {
namespace {

#define BARRIER "threadgroup_barrier(mem_flags::mem_threadgroup);"
#define SIMD_BARRIER "simdgroup_barrier(mem_flags::mem_threadgroup);"

struct KernelRow {
  const char* id;
  const char* name;
  const char* planted;
  const char* clean;
  std::map<std::string, std::string> fields;
};

array input() { return astype(arange(0, 128, 1), float32); }

void run_kernel(const std::string& body, const array& x, std::optional<float> init = {},
                bool atomic_outputs = false) {
  OwnStream s;
  auto kernel =
      fast::metal_kernel("probe", {"x"}, {"out"},
                         "uint i = thread_position_in_grid.x, t = thread_index_in_threadgroup, "
                         "g = threadgroup_position_in_grid.x; (void)i; (void)t; (void)g;\n" +
                             body,
                         "", false, atomic_outputs);
  eval(kernel({x}, {Shape{128}}, {float32}, {128, 1, 1}, {64, 1, 1}, {}, init, false, s.stream));
}

const KernelRow rows[] = {
    {"kernels.out-of-bounds",
     "a kernel reads the element behind the last one",
     "out[i] = x[i + 1];",
     "out[i] = x[min(i + 1, 127u)];",
     {{"kernel", "probe"},
      {"argument", "x"},
      {"slot", "0"},
      {"size", "512"},
      {"byte", "512"},
      {"bytes", "4"},
      {"access", "read"},
      {"thread", "127,0,0"},
      {"part", "body"},
      {"line", "2"},
      {"column", "10"},
      {"source", "out[i] = x[i + 1];"}}},
    {"kernels.out-of-bounds",
     "a kernel writes the element before the first one",
     "out[int(i) - 1] = x[i];",
     "if (i > 0) out[int(i) - 1] = x[i];",
     {{"argument", "out"}, {"byte", "-4"}, {"access", "write"}, {"thread", "0,0,0"}}},
    {"kernels.out-of-bounds",
     "a threadgroup array is one element too short",
     "threadgroup float s[63];\ns[t] = x[i];\nout[i] = t > 62 ? 0 : s[t];",
     "threadgroup float s[64];\ns[t] = x[i];\nout[i] = t > 62 ? 0 : s[t];",
     {{"array", "s"},
      {"space", "threadgroup"},
      {"size", "252"},
      {"line", "3"},
      {"thread", "63,0,0"}}},
    {"kernels.out-of-bounds",
     "an array of the thread is read with an index of the grid",
     "float p[4] = {x[i], 1, 2, 3};\nout[i] = p[t & 7];",
     "float p[4] = {x[i], 1, 2, 3};\nout[i] = p[t & 3];",
     {{"array", "p"}, {"space", "thread"}, {"line", "3"}, {"thread", "4,0,0"}}},

    {"kernels.misaligned",
     "a float is read two bytes into another",
     "out[i] = *(const device float*)((const device char*)x + 2);",
     "out[i] = *(const device float*)((const device char*)x + 4);",
     {{"argument", "x"}, {"byte", "2"}, {"line", "2"}}},
    {"kernels.misaligned",
     "a half is read one byte into another",
     "out[i] = *(const device half*)((const device char*)x + 5);",
     "out[i] = *(const device half*)((const device char*)x + 6);",
     {{"argument", "x"}, {"byte", "5"}, {"bytes", "2"}}},
    {"kernels.misaligned",
     "a word is written between two words of threadgroup memory",
     "threadgroup uchar b[64];\nif (t == 0) *(threadgroup uint*)(b + 2) = 1;",
     "threadgroup uchar b[64];\nif (t == 0) *(threadgroup uint*)(b + 4) = 1;",
     {{"array", "b"}, {"byte", "2"}, {"line", "3"}, {"access", "write"}}},

    {"kernels.race",
     "two threads of a group write one element",
     "out[i / 2] = x[i];",
     "if (i % 2 == 0) out[i / 2] = x[i];",
     {{"argument", "out"},
      {"space", "device"},
      {"thread", "1,0,0"},
      {"other_thread", "0,0,0"},
      {"line", "2"},
      {"other_line", "2"}}},
    {"kernels.race",
     "two groups write one element",
     "out[t] = x[i];",
     "if (g == 0) out[t] = x[i];",
     {{"argument", "out"}, {"thread", "64,0,0"}, {"other_thread", "0,0,0"}}},
    {"kernels.race",
     "threads of another group read what a group writes",
     "out[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_device);\nout[i] = out[i ^ 64];",
     "out[i] = x[i];\nthreadgroup_barrier(mem_flags::mem_device);\nfloat y = out[i ^ 1];\n"
     "threadgroup_barrier(mem_flags::mem_device);\nout[i] = y;",
     {{"argument", "out"}, {"space", "device"}}},
    {"kernels.race",
     "a group reads what another one counts by atomic operations",
     "device atomic_uint* n = (device atomic_uint*)out;\n"
     "if (i == 0) atomic_store_explicit(n, 0u, memory_order_relaxed);\n"
     "if (g == 0) atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);\n"
     "threadgroup_barrier(mem_flags::mem_device);\nfloat y = out[0];\nif (t > 0) out[i] = y;",
     "device atomic_uint* n = (device atomic_uint*)out;\n"
     "if (i == 0) atomic_store_explicit(n, 0u, memory_order_relaxed);\n"
     "if (g == 0) atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);\n"
     "threadgroup_barrier(mem_flags::mem_device);\nfloat y = g == 0 ? out[0] : 0;\nif (t > 0) "
     "out[i] = y;",
     {{"argument", "out"}, {"byte", "0"}, {"thread", "64,0,0"}, {"line", "6"}}},
    {"kernels.race",
     "two threads write one element of a threadgroup array",
     "threadgroup float s[32];\ns[t / 2] = x[i];\n" BARRIER "\nout[i] = s[t / 2];",
     "threadgroup float s[32];\nif (t % 2 == 0) s[t / 2] = x[i];\n" BARRIER "\nout[i] = s[t / 2];",
     {{"array", "s"}, {"space", "threadgroup"}, {"line", "3"}, {"other_line", "3"}}},

    {"kernels.missing-barrier",
     "a neighbour's element is read without a barrier",
     "threadgroup float s[64];\ns[t] = x[i];\nout[i] = s[63 - t];",
     "threadgroup float s[64];\ns[t] = x[i];\n" BARRIER "\nout[i] = s[63 - t];",
     {{"array", "s"}, {"space", "threadgroup"}}},
    {"kernels.missing-barrier",
     "a loop writes again what its last turn reads",
     "threadgroup float s[64];\nfloat y = 0;\nfor (uint k = 0; k < 3; ++k) {\n  s[t] = x[i] + k;\n "
     " " BARRIER "\n  y += s[63 - t];\n}\nout[i] = y;",
     "threadgroup float s[64];\nfloat y = 0;\nfor (uint k = 0; k < 3; ++k) {\n  s[t] = x[i] + k;\n "
     " " BARRIER "\n  y += s[63 - t];\n  " BARRIER "\n}\nout[i] = y;",
     {{"array", "s"}}},
    {"kernels.missing-barrier",
     "a tree of sums has its barrier outside of the loop",
     "threadgroup float s[64];\ns[t] = x[i];\n" BARRIER
     "\nfor (uint k = 32; k > 0; k /= 2)\n  if (t < k) s[t] += s[t + k];\n" BARRIER
     "\nout[i] = s[0];",
     "threadgroup float s[64];\ns[t] = x[i];\n" BARRIER
     "\nfor (uint k = 32; k > 0; k /= 2) {\n  if (t < k) s[t] += s[t + k];\n  " BARRIER
     "\n}\nout[i] = s[0];",
     {{"array", "s"}, {"line", "6"}, {"other_line", "6"}}},

    {"kernels.same-value-race",
     "every thread writes the result",
     "out[0] = 1;",
     "if (i == 0) out[0] = 1;",
     {{"severity", "warning"},
      {"argument", "out"},
      {"access", "write"},
      {"other_access", "write"}}},
    {"kernels.same-value-race",
     "every thread that finds something sets a flag",
     "if (x[i] > 3) out[1] = 2;",
     "if (x[i] > 3) atomic_store_explicit((device atomic_float*)out + 1, 2.0f, "
     "memory_order_relaxed);",
     {{"argument", "out"}, {"byte", "4"}}},
    {"kernels.same-value-race",
     "as before, in threadgroup memory",
     "threadgroup uint any_of[1];\nif (t == 0) any_of[0] = 0;\n" BARRIER
     "\nif (x[i] > 3) any_of[0] = 1;\n" BARRIER "\nout[i] = any_of[0];",
     "threadgroup atomic_uint any_of[1];\n"
     "if (t == 0) atomic_store_explicit(any_of, 0u, memory_order_relaxed);\n" BARRIER
     "\nif (x[i] > 3) atomic_store_explicit(any_of, 1u, memory_order_relaxed);\n" BARRIER
     "\nout[i] = atomic_load_explicit(any_of, memory_order_relaxed);",
     {{"array", "any_of"}, {"line", "5"}}},

    {"kernels.uninitialised-read",
     "an output is added to, and has no init_value",
     "out[i] += x[i];",
     "out[i] = 1;\nout[i] += x[i];",
     {{"argument", "out"}, {"line", "2"}, {"access", "read"}}},
    {"kernels.uninitialised-read",
     "one element of a threadgroup array is not written",
     "threadgroup float s[64];\nif (t != 5) s[t] = x[i];\n" BARRIER "\nout[i] = s[t];",
     "threadgroup float s[64];\nif (t != 5) s[t] = x[i];\n" BARRIER "\nout[i] = t != 5 ? s[t] : 0;",
     {{"array", "s"}, {"byte", "20"}, {"thread", "5,0,0"}, {"line", "5"}}},

    {"kernels.divergent-barrier",
     "half of a group waits at one barrier, half at another",
     "if (t < 32) {\n  " BARRIER "\n} else {\n  " BARRIER "\n}\nout[i] = x[i];",
     "if (g == 0) {\n  " BARRIER "\n} else {\n  " BARRIER "\n}\nout[i] = x[i];",
     {{"line", "3"}, {"other_line", "5"}, {"thread", "0,0,0"}}},
    {"kernels.divergent-barrier",
     "a barrier in a branch, then one behind it",
     "if (t < 32) {\n  " BARRIER "\n}\n" BARRIER "\nout[i] = x[i];",
     "if (x[0] < 32) {\n  " BARRIER "\n}\n" BARRIER "\nout[i] = x[i];",
     {{"line", "3"}, {"other_line", "5"}}},
    {"kernels.divergent-barrier",
     "a loop with a barrier, which threads leave at different turns",
     "for (uint k = 0; k < 1 + t / 32; ++k) {\n  " BARRIER "\n}\n" BARRIER "\nout[i] = x[i];",
     "for (uint k = 0; k < 1 + g; ++k) {\n  " BARRIER "\n}\n" BARRIER "\nout[i] = x[i];",
     {}},

    {"kernels.divergent-barrier",
     "lanes of a simdgroup wait at different barriers of it",
     "if (t % 32 < 16) {\n  " SIMD_BARRIER "\n} else {\n  " SIMD_BARRIER "\n}\nout[i] = x[i];",
     "if (t < 32) {\n  " SIMD_BARRIER "\n} else {\n  " SIMD_BARRIER "\n}\nout[i] = x[i];",
     {{"line", "3"}, {"other_line", "5"}, {"thread", "0,0,0"}, {"other_thread", "16,0,0"}}},

    {"kernels.barrier-after-return",
     "threads beyond the data return before a barrier",
     "if (i >= 100) return;\nthreadgroup float s[64];\ns[t] = x[i];\n" BARRIER "\nout[i] = s[t];",
     "threadgroup float s[64];\nif (i < 100) s[t] = x[i];\n" BARRIER
     "\nif (i < 100) out[i] = s[t];",
     {{"severity", "warning"}, {"line", "5"}, {"thread", "64,0,0"}}},
    {"kernels.barrier-after-return",
     "a barrier in a branch, at the end",
     "out[i] = x[i];\nif (t < 32) {\n  " BARRIER "\n}",
     "out[i] = x[i];\nif (g == 0) {\n  " BARRIER "\n}",
     {{"line", "4"}}},
    {"kernels.barrier-after-return",
     "threads return from a loop that has a barrier",
     "for (uint k = 0; k < 2; ++k) {\n  out[i] = x[i];\n  if (t > 40) return;\n  " BARRIER "\n}",
     "for (uint k = 0; k < 2; ++k) {\n  out[i] = x[i];\n  if (g > 40) return;\n  " BARRIER "\n}",
     {{"line", "5"}}},

    {"kernels.endless-loop",
     "a condition that no value ends",
     "float v = x[i];\nwhile (v > -1) v *= 0.5f;\nout[i] = v;",
     "float v = x[i];\nwhile (v > 1) v *= 0.5f;\nout[i] = v;",
     {{"line", "3"}, {"kernel", "probe"}}},
    {"kernels.endless-loop",
     "a number without a sign is waited for to be negative",
     "uint n = uint(x[i]);\nwhile (n >= 0)\n  --n;\nout[i] = n;",
     "uint n = uint(x[i]);\nwhile (n > 0)\n  --n;\nout[i] = n;",
     {{"line", "3"}}},
    {"kernels.endless-loop",
     "a loop over memory that never advances",
     "float sum = 0;\nfor (uint k = 0; k < 8; k += t / 64)\n  sum += x[k];\nout[i] = sum;",
     "float sum = 0;\nfor (uint k = 0; k < 8; k += 1 + t / 64)\n  sum += x[k];\nout[i] = sum;",
     {{"line", "3"}}},
};

// What an atomic sum needs: somebody who writes the first value.
void add_up(std::optional<float> init) {
  run_kernel("atomic_fetch_add_explicit(out + (i & 3), x[i], memory_order_relaxed);", input(), init,
             true);
}

// x[96], x[95], …: the elements lie before the address that the kernel gets.
void run_backwards(const char* body) { run_kernel(body, slice(input(), {96}, {32}, {-1})); }

struct Timeout {
  explicit Timeout(double seconds) { environment::settings_for_tests().kernel_timeout = seconds; }
  ~Timeout() { environment::settings_for_tests().kernel_timeout = 300; }
};

std::vector<ValidationCase> make_cases() {
  std::vector<ValidationCase> cases;
  for (const KernelRow& row : rows) {
    const bool is_endless = row.id == std::string("kernels.endless-loop");
    auto planted = [&row, is_endless] {
      Timeout timeout(is_endless ? 0.05 : 300);
      run_kernel(row.planted, input());
    };
    auto clean = [&row] { run_kernel(row.clean, input()); };
    cases.push_back({row.id, row.name, "kernels", planted, clean, row.fields});
  }
  cases.push_back({"kernels.out-of-bounds",
                   "a kernel reads before a view that runs backwards",
                   "kernels",
                   [] { run_backwards("out[i] = i < 64 ? x[int(i) * -1 - 1] : 0;"); },
                   [] { run_backwards("out[i] = i < 64 ? x[int(i) * int(x_strides[0])] : 0;"); },
                   {{"argument", "x"}, {"byte", "-256"}, {"thread", "63,0,0"}}});
  cases.push_back({"kernels.uninitialised-read",
                   "an atomic sum has no init_value",
                   "kernels",
                   [] { add_up({}); },
                   [] { add_up(0.0f); },
                   {{"argument", "out"}, {"line", "2"}}});
  return cases;
}

}  // namespace

std::span<const ValidationCase> kernel_cases() {
  static const auto* cases = new std::vector<ValidationCase>(make_cases());
  return *cases;
}

}  // namespace holdfast::testing
