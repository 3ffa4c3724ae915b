#include "jit/race_pairs.h"

namespace holdfast::jit::testing {
namespace {

// Two groups of 64 threads, two simdgroups each. `in` and `out` have 128 floats, `counts` and
// `plain` 32 words; all of them hold something. `gid`, `tid`, `group`, `lane` and `sg` are the
// thread's.
#define LOAD "threadgroup float s[64];\ns[tid] = in[gid];\n"

constexpr RacePair pairs[] = {
    {"reduction", "a tree, a barrier each step",
     LOAD "$T for (uint k = 32; k > 0; k /= 2) { if (tid < k) s[tid] += s[tid + k]; @{$T@|@} }\n"
          "if (tid == 0) out[group] = s[0];"},
    {"reduction", "a tree, a barrier before it",
     LOAD "@{$T@|@} for (uint k = 32; k > 0; k /= 2) { if (tid < k) s[tid] += s[tid + k]; $T }\n"
          "if (tid == 0) out[group] = s[0];"},
    {"reduction", "a tree whose last steps are a simdgroup's",
     LOAD "$T for (uint k = 32; k > 0; k /= 2) {\n"
          "if (tid < 32) { float v = s[tid + k]; @{$S@|@} if (tid < k) s[tid] += v; @{$S@|@} } }\n"
          "if (tid == 0) out[group] = s[0];"},
    {"reduction", "a tree of doubling strides",
     LOAD "$T for (uint k = 1; k < 64; k *= 2) { if (tid % (2 * k) == 0) s[tid] += s[tid + k]; "
          "@{$T@|@} }\nif (tid == 0) out[group] = s[0];"},
    {"reduction", "one thread adds up what all have written",
     LOAD "@{$T@|@} if (tid == 0) { float v = 0; for (uint k = 0; k < 64; ++k) v += s[k]; "
          "out[group] = v; }"},
    {"reduction", "sums of simdgroups, added by one thread",
     "threadgroup float p[2];\nfloat v = simd_sum(in[gid]);\nif (lane == 0) p[sg] = v;\n@{$T@|@}\n"
     "if (tid == 0) out[group] = p[0] + p[1];"},
    {"reduction", "sums of simdgroups, added by all threads",
     "threadgroup float p[2];\nfloat v = simd_sum(in[gid]);\nif (lane == 0) p[sg] = v;\n@{$T@|@}\n"
     "out[gid] = p[0] + p[1];"},
    {"reduction", "sums of simdgroups in a loop that uses its array again",
     "threadgroup float p[2];\nfor (uint k = 0; k < 3; ++k) {\nfloat v = simd_sum(in[gid] + k);\n"
     "if (lane == 0) p[sg] = v;\n$T out[gid] = p[0] + p[1];\n@{$T@|@} }"},
    {"reduction", "a sum over groups",
     "if (tid == 0) @{atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed)@|plain[0] += "
     "1@};"},
    {"reduction", "a maximum over groups",
     "uint v = uint(in[gid]) + gid;\n@{atomic_fetch_max_explicit(counts, v, memory_order_relaxed)@|"
     "if (v > plain[0]) plain[0] = v@};"},
    {"reduction", "a partial sum of another group is read",
     LOAD "$T if (tid == 0) out[group] = s[0] + s[1];\n"
          "if (gid == 0) out[10] = out[0] + @{in[1]@|out[1]@};"},
    {"reduction", "each thread's sum at its place in the grid, or only in the group",
     "float v = 0;\nfor (uint k = 0; k < 4; ++k) v += in[(gid + k) & 127];\n"
     "out[@{gid@|tid@}] = v + gid;"},

    {"scan", "Hillis and Steele: read, wait, write, wait; the first wait",
     LOAD "$T for (uint k = 1; k < 64; k *= 2) { float v = tid >= k ? s[tid - k] : 0; @{$T@|@} "
          "s[tid] += v; $T }\nout[gid] = s[tid];"},
    {"scan", "Hillis and Steele: the second wait",
     LOAD "$T for (uint k = 1; k < 64; k *= 2) { float v = tid >= k ? s[tid - k] : 0; $T "
          "s[tid] += v; @{$T@|@} }\nout[gid] = s[tid];"},
    {"scan", "Hillis and Steele between two arrays",
     "threadgroup float a[2][64];\nuint p = 0;\na[0][tid] = in[gid];\n$T\n"
     "for (uint k = 1; k < 64; k *= 2) { a[1 - p][tid] = a[p][tid] + (tid >= k ? a[p][tid - k] : "
     "0); p = 1 - p; @{$T@|@} }\nout[gid] = a[p][tid];"},
    {"scan", "Blelloch: up and down",
     LOAD
     "for (uint k = 1; k < 64; k *= 2) { $T uint j = (tid + 1) * 2 * k - 1; if (j < 64) s[j] "
     "+= s[j - k]; }\n$T if (tid == 0) s[63] = 0;\n"
     "for (uint k = 32; k > 0; k /= 2) { @{$T@|@} uint j = (tid + 1) * 2 * k - 1; if (j < 64) { "
     "float v = s[j - k]; s[j - k] = s[j]; s[j] += v; } }\n$T out[gid] = s[tid];"},
    {"scan", "prefix sums of simdgroups, with the sums before them",
     "threadgroup float p[2];\nfloat v = simd_prefix_inclusive_sum(in[gid]);\n"
     "if (lane == 31) p[sg] = v;\n@{$T@|@}\nout[gid] = v + (sg > 0 ? p[0] : 0);"},
    {"scan", "the element before one's own", LOAD "@{$T@|@} out[gid] = tid > 0 ? s[tid - 1] : 0;"},
    {"scan", "the last element of the group before",
     "out[gid] = in[gid];\n$D float v = tid == 0 ? out[@{gid@|group > 0 ? gid - 1 : 0@}] : 0;\n"
     "if (v > 100) out[gid] = v;"},
    {"scan", "flags as bytes side by side",
     "threadgroup uchar f[64];\nf[@{tid@|tid / 2@}] = uchar(gid);\n$T out[gid] = f[tid / 2];"},

    {"histogram", "counts of all groups",
     "uint b = uint(in[gid]) & 7;\n@{atomic_fetch_add_explicit(counts + b, 1u, "
     "memory_order_relaxed)@|plain[b] += 1@};"},
    {"histogram", "a group's counts: cleared before they count",
     "threadgroup atomic_uint h[8];\nif (tid < 8) ((threadgroup uint*)h)[tid] = 0;\n@{$T@|@}\n"
     "atomic_fetch_add_explicit(h + (gid & 7), 1u, memory_order_relaxed);"},
    {"histogram", "a group's counts: counted before they are handed on",
     "threadgroup atomic_uint h[8];\nif (tid < 8) ((threadgroup uint*)h)[tid] = 0;\n$T\n"
     "atomic_fetch_add_explicit(h + (gid & 7), 1u, memory_order_relaxed);\n@{$T@|@}\n"
     "if (tid < 8) atomic_fetch_add_explicit(counts + tid, ((threadgroup uint*)h)[tid], "
     "memory_order_relaxed);"},
    {"histogram", "a group's counts: plain counts",
     "threadgroup uint h[64];\nh[tid] = 0;\n$T\nh[@{tid@|tid & 7@}] += 1;\n$T out[gid] = h[tid];"},
    {"histogram", "a count of bytes for each thread, or for four",
     "((device uchar*)plain)[@{gid@|gid / 4@}] += 1;"},
    {"histogram", "counts of a simdgroup",
     "threadgroup uint h[2];\n@{uint n = simd_sum(gid & 1); if (lane == 0) h[sg] = n;@|if (lane == "
     "0) h[sg] = 0; $T if (gid & 1) h[sg] += 1;@}\n$T out[gid] = h[sg];"},
    {"histogram", "a bin that one thread looks at while others count",
     "atomic_fetch_add_explicit(counts + 3, 1u, memory_order_relaxed);\n"
     "if (gid == 9) out[0] = @{atomic_load_explicit(counts + 3, memory_order_relaxed)@|((device "
     "uint*)counts)[3]@};"},

    {"stencil", "a row with its halo",
     "threadgroup float s[66];\ns[tid + 1] = in[gid];\nif (tid == 0) s[0] = 0;\n"
     "if (tid == 63) s[65] = 0;\n@{$T@|@}\nout[gid] = s[tid] + s[tid + 1] + s[tid + 2];"},
    {"stencil", "a halo element that two threads write",
     "threadgroup float s[66];\ns[tid + 1] = in[gid];\nif (tid == 0) s[0] = 0;\n"
     "if (tid @{==@|>=@} @{63@|62@}) s[65] = tid;\n$T out[gid] = s[tid] + s[tid + 2];"},
    {"stencil", "in place in device memory", "out[gid] = in[gid] + @{in@|out@}[(gid + 1) & 127];"},
    {"stencil", "in place in threadgroup memory: all have read",
     LOAD "for (uint k = 0; k < 2; ++k) { $T float v = s[tid] + s[(tid + 1) & 63]; @{$T@|@} s[tid] "
          "= v; }\nout[gid] = s[tid];"},
    {"stencil", "in place in threadgroup memory: all have written",
     LOAD "$T for (uint k = 0; k < 2; ++k) { float v = s[tid] + s[(tid + 1) & 63]; $T s[tid] = v; "
          "@{$T@|@} }\nout[gid] = s[tid];"},
    {"stencil", "between two arrays",
     "threadgroup float a[2][64];\na[0][tid] = in[gid];\nfor (uint k = 0; k < 3; ++k) { @{$T@|@} "
     "a[(k + 1) & 1][tid] = a[k & 1][tid] + a[k & 1][(tid + 1) & 63]; }\nout[gid] = a[1][tid];"},
    {"stencil", "a square tile",
     LOAD
     "@{$T@|@} uint r = tid / 8, c = tid % 8;\nout[gid] = s[((r + 1) & 7) * 8 + c] + s[r * 8 + "
     "((c + 1) & 7)];"},
    {"stencil", "red, then black",
     LOAD "$T if (tid % 2 == 0) s[tid] = s[tid + 1] + s[(tid + 63) & 63];\n@{$T@|@}\n"
          "if (tid % 2 == 1) s[tid] = s[tid - 1] + s[(tid + 1) & 63];\n$T out[gid] = s[tid];"},

    {"double buffer", "two tiles and one barrier a turn, or one tile",
     "threadgroup float a[2][64];\nfloat v = 0;\nfor (uint k = 0; k < 4; ++k) { a[@{k & "
     "1@|0@}][tid] "
     "= in[(gid + k) & 127]; $T v += a[@{k & 1@|0@}][63 - tid]; }\nout[gid] = v;"},
    {"double buffer", "the barrier of a turn",
     "threadgroup float a[2][64];\nfloat v = 0;\nfor (uint k = 0; k < 4; ++k) { a[k & 1][tid] = "
     "in[(gid + k) & 127]; @{$T@|@} v += a[k & 1][63 - tid]; }\nout[gid] = v;"},
    {"double buffer", "the next tile is loaded while this one is used",
     "threadgroup float a[2][64];\nfloat v = 0;\na[0][tid] = in[gid];\n$T\n"
     "for (uint k = 0; k < 3; ++k) { a[@{(k + 1) & 1@|k & 1@}][tid] = in[(gid + k) & 127]; v += "
     "a[k "
     "& 1][63 - tid]; $T }\nout[gid] = v;"},
    {"double buffer", "one simdgroup writes for the other",
     "threadgroup float a[32];\nif (sg == 0) a[lane] = in[gid];\n@{$T@|$S@}\n"
     "if (sg == 1) out[gid] = a[lane];"},
    {"double buffer", "through device memory, in a group",
     "out[gid] = in[gid];\n@{$D@|@}\nfloat v = out[gid ^ 5];\n$D out[gid] = v;"},

    {"shuffle", "a neighbour's value by shuffle, or by memory",
     LOAD "out[gid] = @{simd_shuffle_xor(in[gid], 1)@|s[tid ^ 1]@};"},
    {"shuffle", "a sum by shuffles, written by one lane or by all",
     "float v = in[gid] + gid;\nfor (uint k = 16; k > 0; k /= 2) v += simd_shuffle_down(v, k);\n"
     "@{if (lane == 0)@|@} out[group * 2 + sg] = v + lane;"},
    {"shuffle", "what all lanes have is written by one lane or by all",
     "float v = simd_broadcast_first(in[gid]);\n@{if (lane == 0)@|@} out[group * 2 + sg] = v;"},
    {"shuffle", "elements that were chosen, side by side: by simdgroup, or only by group",
     "bool is_chosen = gid % 3 == 0;\nuint before = simd_prefix_exclusive_sum(uint(is_chosen));\n"
     "if (is_chosen) out[group * 64 + @{sg * 32@|0@} + before] = gid;"},
    {"shuffle", "an exchange in a simdgroup by memory", LOAD "@{$S@|@} out[gid] = s[tid ^ 3];"},
    {"shuffle", "an exchange of two simdgroups by memory",
     LOAD "@{$T@|$S@} out[gid] = s[tid ^ 35];"},

    {"transpose", "a tile of 8 by 8", LOAD "@{$T@|@} out[gid] = s[tid % 8 * 8 + tid / 8];"},
    {"transpose", "a tile that is written back for the grid, or for the group",
     "out[tid % 8 * 8 + tid / 8 + @{group * 64@|0@}] = gid;"},
    {"transpose", "in place: half of the threads exchange, or all",
     "uint r = tid / 8, c = tid % 8, base = group * 64;\nif (@{r < c@|r != c@}) { float v = "
     "out[base "
     "+ r * 8 + c]; out[base + r * 8 + c] = out[base + c * 8 + r]; out[base + c * 8 + r] = v; }"},
    {"transpose", "tiles one after the other in one array",
     "threadgroup float s[64];\nfor (uint k = 0; k < 2; ++k) { s[tid] = in[(gid + k) & 127]; $T "
     "out[gid] = s[tid % 8 * 8 + tid / 8]; @{$T@|@} }"},
    {"transpose", "a tile with padded rows",
     "threadgroup float s[8][9];\ns[tid / 8][tid % 8] = in[gid];\n@{$T@|@}\n"
     "out[gid] = s[tid % 8][tid / 8];"},

    {"simdgroup reduction", "each simdgroup's maximum at its own place",
     "threadgroup float m[4];\nfloat v = simd_max(in[gid]) + tid;\nif (tid % @{32@|16@} == 0) "
     "m[tid / "
     "32] = v;\n$T out[gid] = m[sg];"},
    {"simdgroup reduction", "one thread's value for all",
     "threadgroup float m;\nif (tid == 0) m = in[gid];\n@{$T@|@}\nout[gid] = m;"},
    {"simdgroup reduction", "softmax: maximum, then sum, in one array",
     "threadgroup float p[2];\nfloat m = simd_max(in[gid]);\nif (lane == 0) p[sg] = m;\n$T\n"
     "m = max(p[0], p[1]);\n@{$T@|@}\nfloat e = exp(in[gid] - m), n = simd_sum(e);\n"
     "if (lane == 0) p[sg] = n;\n$T out[gid] = e / (p[0] + p[1]);"},
    {"simdgroup reduction", "layer norm: mean, then variance, in one array",
     "threadgroup float p[2];\nfloat x = in[gid], m = simd_sum(x);\nif (lane == 0) p[sg] = m;\n$T\n"
     "float mean = (p[0] + p[1]) / 64;\n@{$T@|@}\nfloat v = simd_sum((x - mean) * (x - mean));\n"
     "if (lane == 0) p[sg] = v;\n$T out[gid] = p[0] + p[1];"},
    {"simdgroup reduction", "a tile of simdgroup_matrix, stored and read",
     "threadgroup float s[128];\nsimdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, "
     "8>(2.0f);\nsimdgroup_store(m, s + 64 * sg, 8);\n@{$T@|@}\nout[gid] = s[tid] + s[127 - tid];"},

    {"flag", "a flag that says that data is there, in a group",
     "threadgroup uint ready;\nif (tid == 0) ready = 0;\n$T if (tid == 40) ready = 1;\n@{$T@|@}\n"
     "out[gid] = ready;"},
    {"flag", "atomic flag and fences",
     "if (gid == 0) { out[0] = 5; @{$F@|@} atomic_store_explicit(counts, 1u, "
     "memory_order_relaxed); }\nelse if (atomic_load_explicit(counts, memory_order_relaxed) == 1) "
     "{ "
     "@{$F@|@} float v = out[0]; out[gid] = v; }"},
    {"flag", "atomic flag: the reader's fence",
     "if (gid == 0) { out[0] = 5; $F atomic_store_explicit(counts, 1u, memory_order_relaxed); }\n"
     "else if (atomic_load_explicit(counts, memory_order_relaxed) == 1) { @{$F@|@} float v = "
     "out[0]; "
     "out[gid] = v; }"},
    {"flag", "atomic flag: the writer's fence",
     "if (gid == 0) { out[0] = 5; @{$F@|@} atomic_store_explicit(counts, 1u, "
     "memory_order_relaxed); }\nelse if (atomic_load_explicit(counts, memory_order_relaxed) == 1) "
     "{ "
     "$F float v = out[0]; out[gid] = v; }"},
    {"flag", "what is written after the flag",
     "if (gid == 0) { @{out[0] = 5;@|@} $F atomic_store_explicit(counts, 1u, "
     "memory_order_relaxed); @{@|out[0] = 5;@} }\nelse if (atomic_load_explicit(counts, "
     "memory_order_relaxed) == 1) { $F float v = out[0]; out[gid] = v; }"},

    {"flag", "a simdgroup's results, and a fence of one lane",
     "if (gid < 32) { out[gid] = in[gid]; @{$S@|@} if (gid == 0) { $F "
     "atomic_store_explicit(counts, "
     "1u, memory_order_relaxed); } }\nelse if (gid == 100 && atomic_load_explicit(counts, "
     "memory_order_relaxed) == 1) { $F out[gid] = out[7]; }"},
    {"flag", "results of one simdgroup, or of two, and a fence of one lane",
     "if (gid < 64) { out[gid] = in[gid]; $S if (gid == 0) { $F atomic_store_explicit(counts, 1u, "
     "memory_order_relaxed); } }\nelse if (gid == 100 && atomic_load_explicit(counts, "
     "memory_order_relaxed) == 1) { $F out[gid] = out[@{7@|37@}]; }"},
    {"flag", "a flag that another thread adds to, or stores again without a fence",
     "if (gid == 0) { out[0] = 5; $F atomic_store_explicit(counts, 1u, memory_order_relaxed); }\n"
     "if (gid == 1) { @{atomic_fetch_add_explicit@|atomic_store_explicit@}(counts, 2u, "
     "memory_order_relaxed); }\n"
     "if (gid == 64) { uint v = atomic_load_explicit(counts, memory_order_relaxed); $F if (v > 1) "
     "out[1] = out[0]; }"},
    {"flag", "what is heard of one flag is handed on by another",
     "if (gid == 0) { out[0] = 5; $F atomic_store_explicit(counts, 1u, memory_order_relaxed); }\n"
     "if (gid == 40 && atomic_load_explicit(counts, memory_order_relaxed) == 1) { @{$F@|@} "
     "atomic_store_explicit(counts + 1, 1u, memory_order_relaxed); }\n"
     "if (gid == 64 && atomic_load_explicit(counts + 1, memory_order_relaxed) == 1) { $F out[1] = "
     "out[0]; }"},
    {"flag", "a lock, let go of with a fence",
     "bool done = false;\nwhile (!done) { uint open = 0;\n"
     "if (atomic_compare_exchange_weak_explicit(counts, &open, 1u, memory_order_relaxed, "
     "memory_order_relaxed)) { $F plain[0] += 1; @{$F@|@} atomic_store_explicit(counts, 0u, "
     "memory_order_relaxed); done = true; } }"},

    {"last group", "partial results, a fence, a counter",
     "threadgroup uint n;\nif (tid == 0) { out[group] = in[gid]; @{$F@|@} n = "
     "atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed); $F }\n$D\n"
     "if (n == 1 && tid < 2) out[64 + tid] = out[tid];"},
    {"last group", "the group waits for its results before it counts",
     "threadgroup uint n;\nif (tid == 7) out[group] = in[gid];\n@{$D@|@}\nif (tid == 0) { $F n = "
     "atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed); $F }\n$D\n"
     "if (n == 1 && tid < 2) out[64 + tid] = out[tid];"},
    {"last group", "the group waits for the counter",
     "threadgroup uint n;\nif (tid == 0) { out[group] = in[gid]; $F n = "
     "atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed); $F }\n@{$D@|@}\n"
     "if (n == 1 && tid < 2) out[64 + tid] = in[tid];"},

    {"sort", "bitonic: a barrier each step",
     LOAD
     "for (uint k = 2; k <= 64; k *= 2) for (uint j = k / 2; j > 0; j /= 2) { @{$T@|@} uint o = "
     "tid ^ j; if (o > tid && (s[tid] > s[o]) == ((tid & k) == 0)) { float v = s[tid]; s[tid] = "
     "s[o]; s[o] = v; } }\n$T out[gid] = s[tid];"},
    {"sort", "bitonic: one thread of two exchanges, or both",
     LOAD
     "$T uint o = tid ^ 4; if (@{o > tid@|true@}) { float v = s[tid]; s[tid] = s[o]; s[o] = v; "
     "}\n$T out[gid] = s[tid];"},
    {"sort", "odd and even",
     LOAD
     "for (uint k = 0; k < 4; ++k) { @{$T@|@} uint a = 2 * tid + (k & 1); if (a + 1 < 64) { "
     "float v = max(s[a], s[a + 1]); s[a] = min(s[a], s[a + 1]); s[a + 1] = v; } }\n$T out[gid] "
     "= s[tid];"},
    {"sort", "a radix step: ranks that are unique, or digits",
     "uint d = gid & 1;\nuint rank = simd_prefix_exclusive_sum(d), ones = simd_sum(d);\n"
     "uint to = @{d ? 32 - ones + rank : lane - rank@|d@};\nout[group * 64 + sg * 32 + to] = gid;"},
    {"sort", "a merge from one array to another",
     LOAD "threadgroup float m[64];\n$T m[tid ^ 1] = s[tid];\n@{$T@|@} out[gid] = m[63 - tid];"},

    {"matrix", "tiles: loaded before they are multiplied",
     "threadgroup float a[64], b[64];\nuint r = tid / 8, c = tid % 8;\nfloat v = 0;\n"
     "for (uint k = 0; k < 2; ++k) { a[tid] = in[k * 64 + tid]; b[tid] = in[127 - tid]; @{$T@|@}\n"
     "for (uint j = 0; j < 8; ++j) v += a[r * 8 + j] * b[j * 8 + c]; $T }\nout[gid] = v;"},
    {"matrix", "tiles: multiplied before they are loaded again",
     "threadgroup float a[64], b[64];\nuint r = tid / 8, c = tid % 8;\nfloat v = 0;\n"
     "for (uint k = 0; k < 2; ++k) { a[tid] = in[k * 64 + tid]; b[tid] = in[127 - tid]; $T\n"
     "for (uint j = 0; j < 8; ++j) v += a[r * 8 + j] * b[j * 8 + c]; @{$T@|@} }\nout[gid] = v;"},
    {"matrix", "sums of groups that split the inner dimension",
     "@{atomic_fetch_add_explicit((device atomic_float*)out + tid, in[gid], memory_order_relaxed)@|"
     "out[tid] += in[gid]@};"},
    {"matrix", "a row for each simdgroup, or for each group",
     "float v = simd_sum(in[gid]) + sg;\nif (lane == 0) out[group * 2 + @{sg@|0@}] = v;"},
    {"matrix", "rows of float4 side by side, or half over each other",
     "if (tid < 16) *(device float4*)(out + group * 64 + tid * @{4@|2@}) = float4(gid);"},

    {"places", "places taken from a counter",
     "uint at = @{atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed)@|plain[0]++@};\n"
     "out[at & 127] = gid;"},
    {"places", "a counter that its first thread reads before all count",
     "uint v = 0;\nif (gid == 0) v = @{atomic_load_explicit(counts, "
     "memory_order_relaxed)@|((device "
     "uint*)counts)[0]@};\natomic_fetch_add_explicit(counts, 1u, memory_order_relaxed);\n"
     "out[gid] = v;"},
    {"places", "a counter of one group, which itself reads, or all",
     "if (group == 0) atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed);\n$D\n"
     "if (@{group == 0@|true@}) out[gid] = ((device uint*)counts)[0];"},
    {"places", "plain and atomic reads of what nobody writes, or one thread does",
     "@{@|if (gid == 40) atomic_store_explicit(counts, 1u, memory_order_relaxed);\n@}"
     "out[gid] = gid & 1 ? atomic_load_explicit(counts, memory_order_relaxed) : ((device "
     "uint*)counts)[0];"},
    {"places", "a permutation, or not", "out[@{gid * 37 & 127@|gid * 36 & 127@}] = gid;"},
    {"places", "halves side by side, or at one place",
     "((device half*)out)[@{gid@|gid & ~1u@}] = half(gid);"},
    {"places", "fields of a struct",
     "struct Two { float a, b; };\nthreadgroup Two t[32];\nif (tid < 32) t[tid].a = 1; else t[tid "
     "- "
     "32].@{b@|a@} = 2;\n$T out[gid] = t[tid & 31].a;"},
    {"places", "bits of a word",
     "@{atomic_fetch_or_explicit(counts + group, 1u << lane, memory_order_relaxed)@|plain[group] "
     "|= "
     "1u << lane@};"},
};

enum class Side { clean, racy };

std::string expand(const std::string& body, Side side) {
  std::string text;
  bool is_wanted = true;
  for (size_t i = 0; i < body.size(); ++i) {
    const char* words[][2] = {{"T", "threadgroup_barrier(mem_flags::mem_threadgroup);"},
                              {"D", "threadgroup_barrier(mem_flags::mem_device);"},
                              {"S", "simdgroup_barrier(mem_flags::mem_threadgroup);"},
                              {"F",
                               "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
                               "thread_scope_device);"}};
    if (body[i] == '@') {
      const char mark = body[++i];
      is_wanted = mark == '}' || (mark == '{') == (side == Side::clean);
    } else if (body[i] == '$') {
      ++i;
      for (auto& [name, word] : words) {
        if (is_wanted && body[i] == name[0]) text += word;
      }
    } else if (is_wanted) {
      text += body[i];
    }
  }
  return text;
}

}  // namespace

std::span<const RacePair> race_pairs() { return pairs; }
std::string racy(const RacePair& pair) { return expand(pair.body, Side::racy); }
std::string race_free(const RacePair& pair) { return expand(pair.body, Side::clean); }

}  // namespace holdfast::jit::testing
