#include "jit/random_kernels.h"

#include <algorithm>
#include <vector>

namespace holdfast::jit::testing {
namespace {

// splitmix64: the same numbers on every machine.
class Random {
 public:
  // The multiplier is not that of `next`, or each seed would give its neighbour's numbers.
  explicit Random(uint64_t seed) : state_(seed * 0xd1342543de82ef95u + 0x2545f4914f6cdd1du) {
    state_ = next();
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(next() % limit); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

std::string text(uint32_t value) { return std::to_string(value); }
std::string literal(uint32_t value) { return text(value) + "u"; }

class Generator {
 public:
  // Most programs are small: what fails is then easy to read, and quick to compile.
  explicit Generator(uint64_t seed) : random_(seed), budget_(random_.one_in(10) ? 20 : 6) {}

  RandomKernel run() {
    RandomKernel kernel;
    choose_sizes(kernel);
    uses_shared_ = threads_ > 0 && !random_.one_in(4);
    helper_ = random_.one_in(2);
    wave_ = random_.one_in(2);
    signed_ = !random_.one_in(3);
    if (signed_) {
      kernel.sizes[random_kernel_grid_size] = static_cast<int32_t>(kernel.grid[0]);
      kernel.sizes[random_kernel_group_size] = static_cast<int32_t>(kernel.threadgroup[0]);
      row_ = static_cast<int>(kernel.grid[0]);
    }
    std::string body = block(2, /*depth=*/0, /*uniform=*/true, 3 + random_.below(4));
    kernel.source = head() + body + tail();
    return kernel;
  }

 private:
  // --- What a statement may do where it stands.
  struct Place {
    bool is_uniform;     // all threads of the group come here together: barriers may stand here
    bool in_loop;        // break and continue may stand here
    bool holds_barrier;  // the innermost loop has a barrier: no break or continue
  };

  void choose_sizes(RandomKernel& kernel) {
    static constexpr Size groups[] = {{32, 1, 1}, {64, 1, 1}, {96, 1, 1},  {8, 4, 2}, {1, 1, 1},
                                      {50, 1, 1}, {33, 2, 1}, {16, 16, 1}, {5, 7, 3}, {128, 1, 1}};
    kernel.threadgroup = groups[random_.below(std::size(groups))];
    for (size_t axis = 0; axis < 3; ++axis) {
      uint32_t size = kernel.threadgroup[axis];
      kernel.grid[axis] = size * (1 + random_.below(axis == 0 ? 3 : 2));
      // An edge that is cut, or a threadgroup that is clamped.
      if (random_.one_in(3)) kernel.grid[axis] -= random_.below(size);
    }
    threads_ = 1;
    for (size_t axis = 0; axis < 3; ++axis)
      threads_ *= std::min(kernel.threadgroup[axis], kernel.grid[axis]);
  }

  std::string head() const {
    std::string s = "#include <metal_stdlib>\nusing namespace metal;\n";
    if (helper_) {
      s += "uint helper(uint a, uint b) {\n"
           "  for (uint k = 0; k < (b & 7u); ++k) {\n"
           "    if (((a >> k) & 3u) == 3u) return a + k;\n"
           "    a = a * 5u + (b ^ k);\n"
           "  }\n"
           "  return a - b;\n"
           "}\n";
    }
    // Arithmetic without loops: compiled once and called, when the kernel has enough of it.
    if (wave_) {
      s += "float wave(float x, uint k) {\n"
           "  uint u = as_type<uint>(x) ^ (k * 2654435761u);\n"
           "  float y = x * 0.25f + float(u & 15u);\n"
           "  if (y > 20.0f) {\n"
           "    y = sin(y) + float(u / ((k & 63u) | 1u)) * 1.0e-9f;\n"
           "    if ((u & 3u) == 1u) y = float(ulong(u) % (ulong(k) + 1ul)) * 1.0e-6f - y;\n"
           "  } else if ((k & 1u) != 0u) {\n"
           "    y = y / (1.5f + y * y) + float(half(y));\n"
           "    y = fma(y, 0.5f, exp(-y * y));\n"
           "  }\n"
           "  return y * y < 1.0e6f ? y : 1.0f;\n"
           "}\n";
    }
    s += "[[kernel]] void random_kernel(device const uint* in [[buffer(0)]],\n"
         "    device uint* out [[buffer(1)]], device float* fout [[buffer(2)]],\n"
         "    device atomic_uint* counters [[buffer(3)]],\n"
         "    constant uint* parameters [[buffer(4)]], device const uint* table [[buffer(5)]],\n"
         "    device uint* placed [[buffer(6)]], constant int* sizes [[buffer(7)]],\n"
         "    uint3 position [[thread_position_in_grid]], uint3 grid [[threads_per_grid]],\n"
         "    uint3 group [[threadgroup_position_in_grid]],\n"
         "    uint3 size [[threads_per_threadgroup]],\n"
         "    uint3 local [[thread_position_in_threadgroup]],\n"
         "    uint tid [[thread_index_in_threadgroup]],\n"
         "    uint lane [[thread_index_in_simdgroup]],\n"
         "    uint simdgroup [[simdgroup_index_in_threadgroup]]) {\n"
         "  const uint self = (position.z * grid.y + position.y) * grid.x + position.x;\n"
         "  const uint n = size.x * size.y * size.z;\n"
         "  uint a = in[self & 255u], b = self * 2654435761u, c = lane, d = in[(self * 7u) & "
         "255u];\n"
         "  float f = float(a & 1023u) * 0.125f + 1.0f, g = float(lane) - 7.5f;\n"
         "  uint p[8];\n"
         "  for (uint k = 0; k < 8; ++k) p[k] = a + k * b;\n";
    // What no bound is known of: read from memory, and signed.
    if (signed_) {
      s += "  const int line = int(position.z * grid.y + position.y);\n"
           "  const int row = sizes[" +
           text(random_kernel_grid_size) + "];\n" + "  const int across = sizes[" +
           text(random_kernel_group_size) + "];\n" +
           "  const int x = int(local.x), column = int(group.x) * across + x;\n"
           "  device const uint* middle = table + " +
           text(random_kernel_table / 2) + ";\n";
    }
    if (uses_shared_) {
      s += "  threadgroup uint shared[" + text(threads_) + "];\n" +
           "  shared[tid] = a;\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n";
    }
    return s;
  }

  std::string tail() const {
    std::string s;
    if (uses_shared_)
      s += "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  a += shared[(tid + 1u) % n];\n";
    s += "  device uint* mine = out + self * 8u;\n"
         "  mine[0] = a; mine[1] = b; mine[2] = c; mine[3] = d;\n"
         "  mine[4] = p[0] ^ p[1]; mine[5] = p[2] + p[3]; mine[6] = p[4] ^ p[5]; mine[7] = p[6] + "
         "p[7];\n"
         "  fout[self * 2u] = f;\n  fout[self * 2u + 1u] = g;\n}\n";
    return s;
  }

  // --- Signed sums: an index as people write it, `row * hidden + (g * gs + tid)`, of which the
  // compiler knows only that it does not overflow. Parts are often made in one block, before a
  // barrier, and used in another.
  struct Sum {
    std::string name;
    int low, high;
  };

  Sum signed_part() {
    auto below = [&](int limit) {
      return static_cast<int>(random_.below(static_cast<uint32_t>(limit)));
    };
    auto size = [&] { return "sizes[" + text(random_.below(random_kernel_small_sizes)) + "]"; };
    switch (random_.below(10)) {
      case 0:
        return {"int(lane)", 0, 31};
      case 1:
        return {"x", 0, row_ - 1};
      case 2:
        return {"column", 0, row_ - 1};
      case 3:
        return {"int(group.x) * across", 0, row_ - 1};
      case 4: {
        int factor = 1 + below(9);
        return {size() + " * " + std::to_string(factor), 0, 7 * factor};
      }
      case 5:
        return {size() + " * " + size(), 0, 49};
      case 6: {
        int number = below(60);
        return {std::to_string(number), number, number};
      }
      case 7:
        return {size(), 0, 7};
      default:
        if (sums_.empty()) return {"column", 0, row_ - 1};
        return sums_[random_.below(static_cast<uint32_t>(sums_.size()))];
    }
  }

  Sum signed_sum(int depth = 0) {
    if (depth > 1 || (depth > 0 && random_.one_in(3))) return signed_part();
    Sum a = signed_part(), b = signed_sum(depth + 1);
    if (random_.one_in(2)) std::swap(a, b);
    bool is_difference = random_.one_in(4);
    Sum sum = is_difference
                  ? Sum{"(" + a.name + " - " + b.name + ")", a.low - b.high, a.high - b.low}
                  : Sum{"(" + a.name + " + " + b.name + ")", a.low + b.low, a.high + b.high};
    constexpr int most = random_kernel_table / 2 - 1;
    return sum.low >= -most && sum.high <= most ? sum : Sum{"column", 0, row_ - 1};
  }

  std::string new_sum(const std::string& in, Place place) {
    Sum sum = signed_sum();
    std::string name = "s" + text(sum_names_++);
    static constexpr const char* types[] = {"int", "int", "int", "short", "long"};
    std::string s = in + "const " + types[random_.below(5)] + " " + name + " = " + sum.name + ";\n";
    sums_.push_back({name, sum.low, sum.high});
    if (place.is_uniform && uses_shared_ && random_.one_in(2))
      s += in + "threadgroup_barrier(mem_flags::mem_threadgroup);\n";
    return s;
  }

  // --- Expressions.
  std::string variable() {
    static constexpr const char* names[] = {"a", "b", "c", "d"};
    return names[random_.below(4)];
  }

  // The same in all threads of the group.
  std::string uniform_value() {
    switch (random_.below(4)) {
      case 0:
        return literal(random_.below(100));
      case 1:
        return "parameters[" + text(random_.below(random_kernel_parameters)) + "]";
      case 2:
        return std::string("(group.x + ") + literal(random_.below(9)) + ")";
      default:
        return "n";
    }
  }

  std::string leaf() {
    if (signed_ && random_.one_in(6)) return "middle[" + signed_sum(1).name + "]";
    switch (random_.below(12)) {
      case 0:
        return literal(random_.below(2) ? random_.below(40)
                                        : static_cast<uint32_t>(random_.next()));
      case 1:
        return "lane";
      case 2:
        return "self";
      case 3:
        return "p[" + variable() + " & 7u]";
      case 4:
        return "p[" + text(random_.below(8)) + "]";
      case 5:
        return uniform_value();
      case 6:
        return "in[(" + variable() + " + " + literal(random_.below(64)) + ") & 255u]";
      case 7:
        return "in[(lane * " + literal(1 + random_.below(4)) + " + " + uniform_value() +
               ") & 255u]";
      default:
        return loop_variable_or(variable());
    }
  }

  std::string loop_variable_or(const std::string& otherwise) {
    if (loop_variables_.empty() || !random_.one_in(3)) return otherwise;
    return loop_variables_[random_.below(static_cast<uint32_t>(loop_variables_.size()))];
  }

  std::string expression(int depth = 0) {
    if (depth > 2 || random_.one_in(3)) return leaf();
    std::string x = expression(depth + 1), y = expression(depth + 1);
    auto binary = [&](const char* op) { return "(" + x + " " + op + " " + y + ")"; };
    switch (random_.below(22)) {
      case 0:
      case 1:
        return binary("+");
      case 2:
        return binary("-");
      case 3:
        return binary("*");
      case 4:
        return binary("^");
      case 5:
        return binary("&");
      case 6:
        return binary("|");
      case 7:
        return binary("/");
      case 8:
        return binary("%");
      case 9:
        return "uint(int(" + x + ") / int(" + y + "))";
      case 10:
        return "uint(int(" + x + ") % int(" + y + "))";
      case 11:
        return "(" + x + " << (" + y + " & 31u))";
      case 12:
        return "uint(int(" + x + ") >> (" + y + " & 31u))";
      case 13:
        return "(" + condition(depth + 1) + " ? " + x + " : " + y + ")";
      case 14:
        return "min(" + x + ", " + y + ")";
      case 15:
        return "uint(max(int(" + x + "), int(" + y + ")))";
      case 16:
        return "popcount(" + x + ")";
      case 17:
        return "uint(uchar(" + x + ")) + uint(ushort(" + y + "))";
      case 18:
        return "uint((ulong(" + x + ") * ulong(" + y + ")) >> 32)";
      case 19:
        return "uint4(" + x + ", " + y + ", " + leaf() + ", lane)." +
               std::string(1, "xyzw"[random_.below(4)]);
      case 20:
        return helper_ ? "helper(" + x + ", " + y + ")" : binary("+");
      default:
        return "uint(clamp(" + float_expression(depth + 1) + ", 0.0f, 1.0e6f))";
    }
  }

  std::string condition(int depth = 0) {
    static constexpr const char* comparisons[] = {"<", ">", "<=", ">=", "==", "!="};
    switch (random_.below(6)) {
      case 0:
        return "((" + expression(depth + 1) + " & " + literal(1 + random_.below(3)) +
               ") == " + literal(random_.below(2)) + ")";
      case 1:
        return "(int(" + expression(depth + 1) + ") < int(" + expression(depth + 1) + "))";
      case 2:
        return "(" + float_expression(depth + 1) + " < " + float_expression(depth + 1) + ")";
      case 3:
        return "(lane " + std::string(comparisons[random_.below(6)]) + " " +
               literal(random_.below(33)) + ")";
      default:
        return "(" + expression(depth + 1) + " " + comparisons[random_.below(6)] + " " +
               expression(depth + 1) + ")";
    }
  }

  // Small numbers, so that sums stay finite for long; infinities and NaN may come all the same.
  std::string float_expression(int depth = 0) {
    if (depth > 2 || random_.one_in(3)) {
      switch (random_.below(5)) {
        case 0:
          return "f";
        case 1:
          return "g";
        case 2:
          return "float(" + variable() + " & 255u)";
        case 3:
          return text(random_.below(50)) + ".25f";
        default:
          return "float(int(lane) - 5)";
      }
    }
    std::string x = float_expression(depth + 1), y = float_expression(depth + 1);
    switch (random_.below(wave_ ? 12 : 9)) {
      case 9:
      case 10:
      case 11:
        return "wave(" + x + ", " + variable() + ")";
      case 0:
      case 1:
        return "(" + x + " + " + y + ")";
      case 2:
        return "(" + x + " - " + y + ")";
      case 3:
        return "(" + x + " * " + y + " * 0.0078125f)";
      case 4:
        return "(" + x + " / (1.5f + " + y + " * " + y + "))";
      case 5:
        return "fma(" + x + ", 0.5f, " + y + ")";
      case 6:
        return "float(half(" + x + ") + half(" + y + "))";
      case 7:
        return "sqrt(" + x + " * " + x + " + 0.5f)";
      default:
        return "(" + condition(depth + 1) + " ? " + x + " : " + y + ")";
    }
  }

  // A call that works across the lanes which are there.
  std::string cross_lane() {
    std::string x = expression(1);
    switch (random_.below(16)) {
      case 0:
      case 1:
        return "simd_sum(" + x + ")";
      case 2:
        return "simd_max(" + x + ")";
      case 3:
        return "uint(simd_min(int(" + x + ")))";
      case 4:
        return "simd_xor(" + x + ")";
      case 5:
        return "simd_and(" + x + ")";
      case 6:
        return "simd_or(" + x + ")";
      case 7:
        return "simd_shuffle(" + x + ", ushort(" + expression(1) + " & 31u))";
      case 8:
        return "simd_shuffle_xor(" + x + ", ushort(" + text(1 + random_.below(31)) + "))";
      case 9:
        return "simd_shuffle_up(" + x + ", ushort(" + text(1 + random_.below(20)) + "))";
      case 10:
        return "simd_shuffle_down(" + x + ", ushort(" + text(1 + random_.below(20)) + "))";
      case 11:
        return "simd_broadcast(" + x + ", ushort(" + text(random_.below(32)) + "))";
      case 12:
        return "simd_prefix_exclusive_sum(" + x + ")";
      case 13:
        return "simd_prefix_inclusive_sum(" + x + ")";
      case 14:
        return "uint(simd_any(" + condition(1) + ")) + 2u * uint(simd_all(" + condition(1) + "))";
      default:
        return "simd_product(" + x + " | 1u)";
    }
  }

  // --- Statements.
  std::string indent(int level) const { return std::string(static_cast<size_t>(level) * 2, ' '); }

  std::string assignment() {
    static constexpr const char* operators[] = {"=", "+=", "^=", "-="};
    std::string op = std::string(" ") + operators[random_.below(4)] + " ";
    switch (random_.below(10)) {
      case 0:
        return "p[" + variable() + " & 7u]" + op + expression() + ";";
      case 1:
        return "p[" + text(random_.below(8)) + "]" + op + expression() + ";";
      case 2:
        return "f = " + float_expression() + ";";
      case 3:
        return "g = " + float_expression() + ";";
      case 4:
      case 5:
        return variable() + op + cross_lane() + ";";
      case 6:
        return random_.one_in(2)
                   ? "f = simd_sum(f) * 0.03125f;"
                   : "g = simd_shuffle_xor(g, ushort(" + text(1 + random_.below(31)) + "));";
      default:
        return variable() + op + expression() + ";";
    }
  }

  std::string block(int level, int depth, bool uniform, uint32_t statements) {
    return block(level, depth, Place{uniform, false, false}, statements);
  }

  std::string block(int level, int depth, Place place, uint32_t statements) {
    std::string s;
    size_t visible = sums_.size();
    for (uint32_t i = 0; i < statements; ++i) s += statement(level, depth, place);
    sums_.resize(visible);
    return s;
  }

  uint32_t few(int depth) { return 1 + random_.below(depth > 1 ? 2 : 4); }

  std::string statement(int level, int depth, Place place) {
    std::string in = indent(level);
    if (signed_ && random_.one_in(5)) {
      if (random_.one_in(2)) return new_sum(in, place);
      return in + "placed[line * row + column] = " + expression(1) + ";\n";
    }
    if (budget_ == 0) return in + assignment() + "\n";
    --budget_;
    switch (random_.below(depth > 3 ? 8 : 16)) {
      case 0:
        if (place.is_uniform && uses_shared_ && random_.one_in(2)) return exchange(in);
        return in + assignment() + "\n";
      case 1:
        if (place.is_uniform && uses_shared_ && random_.one_in(2)) return exchange(in);
        return in + "simdgroup_barrier(mem_flags::mem_none);\n";
      case 2:
        return in + "atomic_fetch_add_explicit(counters + (" + expression(1) + " & 15u), " +
               expression(1) + " & 255u, memory_order_relaxed);\n";
      case 3:
        if (place.in_loop && !place.holds_barrier) {
          return in + "if " + condition() + " " + (random_.one_in(2) ? "break" : "continue") +
                 ";\n";
        }
        return in + assignment() + "\n";
      case 4:
        // A thread that leaves: it keeps what it has written, the others go on without it.
        if (depth > 0 && random_.one_in(3)) {
          return in + "if " + condition() + " { out[self * 8u] = " + leaf() + "; return; }\n";
        }
        return in + assignment() + "\n";
      case 8:
      case 9:
        return branch(level, depth, place);
      case 10:
        return uniform_branch(level, depth, place);
      case 11:
      case 12:
        return loop(level, depth, place);
      case 13:
        return uniform_loop(level, depth, place);
      case 14:
        return choice(level, depth, place);
      default:
        return in + assignment() + "\n";
    }
  }

  // Everyone shows a value and looks at somebody's.
  std::string exchange(const std::string& in) {
    return in + "threadgroup_barrier(mem_flags::mem_" +
           (random_.one_in(2) ? "threadgroup" : "none") + ");\n" + in +
           "shared[tid] = " + expression() + ";\n" + in +
           "threadgroup_barrier(mem_flags::mem_threadgroup);\n" + in + variable() + " ^= shared[(" +
           expression() + ") % n];\n";
  }

  std::string branch(int level, int depth, Place place) {
    Place inside = place;
    inside.is_uniform = false;
    std::string in = indent(level);
    std::string s =
        in + "if " + condition() + " {\n" + block(level + 1, depth + 1, inside, few(depth));
    if (random_.one_in(2)) s += in + "} else {\n" + block(level + 1, depth + 1, inside, few(depth));
    return s + in + "}\n";
  }

  std::string uniform_branch(int level, int depth, Place place) {
    std::string in = indent(level);
    std::string s = in + "if ((" + uniform_value() + " & 1u) == " + literal(random_.below(2)) +
                    ") {\n" + block(level + 1, depth + 1, place, few(depth));
    if (random_.one_in(2)) s += in + "} else {\n" + block(level + 1, depth + 1, place, few(depth));
    return s + in + "}\n";
  }

  // Each lane has its own number of turns.
  std::string loop(int level, int depth, Place) {
    return counted_loop(level, depth, expression() + " & 7u", Place{false, true, false});
  }

  std::string uniform_loop(int level, int depth, Place place) {
    bool barriers = place.is_uniform && random_.one_in(2);
    return counted_loop(level, depth, uniform_value() + " & 3u", Place{barriers, true, barriers});
  }

  std::string counted_loop(int level, int depth, const std::string& bound, Place inside) {
    std::string in = indent(level), id = text(loops_++);
    std::string s = in + "const uint n" + id + " = " + bound + ";\n";
    bool is_while = random_.one_in(4);
    if (is_while) {
      s += in + "uint k" + id + " = 0;\n" + in + "while (k" + id + " < n" + id + ") {\n" + in +
           "  ++k" + id + ";\n";
    } else {
      s += in + "for (uint k" + id + " = 0; k" + id + " < n" + id + "; ++k" + id + ") {\n";
    }
    loop_variables_.push_back("k" + id);
    s += block(level + 1, depth + 1, inside, few(depth));
    loop_variables_.pop_back();
    return s + in + "}\n";
  }

  std::string choice(int level, int depth, Place place) {
    Place inside = place;
    inside.is_uniform = false;
    inside.in_loop = false;  // `break` would mean the switch
    std::string in = indent(level);
    std::string s = in + "switch (" + expression() + " & 3u) {\n";
    for (uint32_t i = 0; i < 3; ++i) {
      s += in + "  case " + text(i) + ": {\n" +
           block(level + 2, depth + 1, inside, few(depth + 1)) + in + "  }\n";
      if (!random_.one_in(3)) s += in + "  break;\n";
    }
    return s + in + "  default: " + assignment() + "\n" + in + "}\n";
  }

  Random random_;
  uint32_t budget_;  // statements that are still to be made of others
  uint32_t threads_ = 0;
  bool uses_shared_ = false, helper_ = false, wave_ = false, signed_ = false;
  std::vector<Sum> sums_;  // that are visible where a statement is
  uint32_t sum_names_ = 0;
  int row_ = 0;  // threads of the grid along x
  uint32_t loops_ = 0;
  std::vector<std::string> loop_variables_;
};

}  // namespace

RandomKernel random_kernel(uint64_t seed) { return Generator(seed).run(); }

}  // namespace holdfast::jit::testing
