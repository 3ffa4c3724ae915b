// Elements that arrays of indices name: gather, scatter, slices that start where an array says, and
// what is the same without any index: parts of arrays that are written.
//
// A kernel walks over what it writes, or over the updates, in units of 1 to 16 bytes that the host
// has joined. It never follows an index that leaves its axis: it reports it, reads zero in its
// place, and writes nothing there.
#include "support/indexing.h"
#include "support/errors.h"
#include "support/walk.h"
#include "support/combine.h"

struct IndexedAxis {
  long size;     // negative indices count from here; 0: they are errors
  long room;     // the largest index that may be followed
  long stride;   // in units of what is indexed; of offsets: their shift from elements to units
  ulong first;   // the number of the walk's first position
  ulong factor;  // elements per unit
  // Errors name the number of the walk's element, divided by this; 0: the position in the array.
  ulong divisor;
  uint kind;  // of the integers, below
};
enum IndexKind : uint {
  kind_uint8,
  kind_uint16,
  kind_uint32,
  kind_uint64,
  kind_int8,
  kind_int16,
  kind_int32,
  kind_int64,
  kind_none,     // no index
  kind_offsets,  // of elements, what index_offsets and start_offset write
};
// An offset that is none.
constant constexpr long nowhere = LONG_MIN;

// An integer beyond long is its maximum.
inline long integer_at(const device uchar* integers, long at, uint kind) {
  switch (kind) {
    case kind_uint8:
      return integers[at];
    case kind_uint16:
      return reinterpret_cast<const device ushort*>(integers)[at];
    case kind_uint32:
      return reinterpret_cast<const device uint*>(integers)[at];
    case kind_uint64:
      return long(min(reinterpret_cast<const device ulong*>(integers)[at], ulong(LONG_MAX)));
    case kind_int8:
      return reinterpret_cast<const device char*>(integers)[at];
    case kind_int16:
      return reinterpret_cast<const device short*>(integers)[at];
    case kind_int32:
      return reinterpret_cast<const device int*>(integers)[at];
    default:
      return reinterpret_cast<const device long*>(integers)[at];
  }
}
// The same for those that gather and update read themselves: 32 bits, int64, offsets.
inline long wide_integer_at(const device uchar* integers, long at, uint kind) {
  if (kind == kind_none) return 0;
  if (kind == kind_int64 || kind == kind_offsets)
    return reinterpret_cast<const device long*>(integers)[at];
  const uint bits = reinterpret_cast<const device uint*>(integers)[at];
  return kind == kind_int32 ? long(int(bits)) : long(bits);
}

// `given` may not be followed: the rest of a kernel leaves it out.
inline bool is_outside(long given, constant IndexedAxis& axis) {
  const long element = given < 0 ? given + axis.size : given;
  return axis.kind >= kind_none ? given == nowhere : element < 0 || element > axis.room;
}
inline long followed(long given, constant IndexedAxis& axis) {
  if (axis.kind >= kind_none) return given >> axis.stride;
  return (given < 0 ? given + axis.size : given) * axis.stride;
}
// What a thread met that may not be followed: the last of it.
struct Wrong {
  bool is_met = false;
  uint index;  // in the walk
  long given, at;
};
inline void report_wrong(Wrong wrong, constant IndexedAxis& axis, device Errors& errors) {
  if (!wrong.is_met || axis.kind == kind_offsets) return;  // index_offsets reported it
  long position = wrong.at;
  if (axis.divisor > 0) position = (axis.first + wrong.index) * axis.factor / axis.divisor;
  report(errors, 1, wrong.given, position);
}

// Threads take positions that are a threadgroup apart, and look up all of their indices before
// they follow the first.
constant constexpr uint threads = 256;

// Views: the array, the indices.
template <typename Unit, int per_thread>
KERNEL(256)
gather(const device Unit* in, const device uchar* indices, device Unit* out,
       constant IndexedAxis& axis, constant Walk<2>& walk, constant JointExtent<2>* extents,
       device Errors& errors, IN_GROUP(uint)) {
  const uint first = group * (threads * per_thread) + t;
  long from[per_thread], at[per_thread], given[per_thread];
  for (int i = 0; i < per_thread; ++i) {
    const Offsets<2> offsets = offsets_of(min(first + i * threads, walk.size - 1), walk, extents);
    from[i] = offsets.of[0];
    at[i] = offsets.of[1];
  }
  for (int i = 0; i < per_thread; ++i) given[i] = wide_integer_at(indices, at[i], axis.kind);
  Unit values[per_thread];
  Wrong wrong;
  for (int i = 0; i < per_thread; ++i) {
    values[i] = Unit(0);
    if (is_outside(given[i], axis)) {
      wrong = {true, min(first + i * threads, walk.size - 1), given[i], at[i]};
    } else {
      values[i] = in[from[i] + followed(given[i], axis)];
    }
  }
  for (int i = 0; i < per_thread; ++i) {
    if (first + i * threads < walk.size) out[axis.first + first + i * threads] = values[i];
  }
  report_wrong(wrong, axis, errors);
}

#define GATHER(bytes, Unit, per_thread) ENTRY("gather_" #bytes, gather<Unit, per_thread>)
GATHER(1, uchar, 8)
GATHER(2, ushort, 8)
GATHER(4, uint, 4)
GATHER(8, ulong, 4)
GATHER(16, uint4, 4)

struct Update {
  uint mode;
  uint is_wide;  // units are blocks of 16 bytes
};

// Views: the array, the indices, the updates. No two updates meet the same element.
template <typename T>
KERNEL(256)
update(device T* out, const device uchar* indices, const device T* updates, constant Update& how,
       constant IndexedAxis& axis, constant Walk<3>& walk, constant JointExtent<3>* extents,
       device Errors& errors, IN_GROUP(uint)) {
  constexpr int per_thread = 4;
  const uint first = group * (threads * per_thread) + t;
  long to[per_thread], from[per_thread], at[per_thread], given[per_thread];
  for (int i = 0; i < per_thread; ++i) {
    const Offsets<3> offsets = offsets_of(min(first + i * threads, walk.size - 1), walk, extents);
    to[i] = offsets.of[0];
    at[i] = offsets.of[1];
    from[i] = offsets.of[2];
  }
  for (int i = 0; i < per_thread; ++i) given[i] = wide_integer_at(indices, at[i], axis.kind);
  Wrong wrong;
  for (int i = 0; i < per_thread; ++i) {
    if (is_outside(given[i], axis))
      wrong = {true, min(first + i * threads, walk.size - 1), given[i], at[i]};
    const bool is_left_out = is_outside(given[i], axis) || first + i * threads >= walk.size;
    to[i] = is_left_out ? nowhere : to[i] + followed(given[i], axis);
  }
  report_wrong(wrong, axis, errors);
  if (how.is_wide) {
    auto* wide_out = reinterpret_cast<device uint4*>(out);
    auto* wide_updates = reinterpret_cast<const device uint4*>(updates);
    uint4 old[per_thread], taken[per_thread];
    for (int i = 0; i < per_thread; ++i) {
      taken[i] = wide_updates[from[i]];
      old[i] = uint4(0);
      if (how.mode != update_replace && to[i] != nowhere) old[i] = wide_out[to[i]];
    }
    for (int i = 0; i < per_thread; ++i) {
      if (to[i] != nowhere) wide_out[to[i]] = combined_blocks<T>(how.mode, old[i], taken[i]);
    }
  } else {
    T old[per_thread], taken[per_thread];
    for (int i = 0; i < per_thread; ++i) {
      taken[i] = updates[from[i]];
      old[i] = T(0);
      if (how.mode != update_replace && to[i] != nowhere) old[i] = out[to[i]];
    }
    for (int i = 0; i < per_thread; ++i) {
      if (to[i] != nowhere) out[to[i]] = combined(how.mode, old[i], taken[i]);
    }
  }
}

#define UPDATE(name, T) ENTRY("update_" #name, update<T>)
UPDATE(bool, bool)
FOR_NUMBERS(UPDATE)

// Where the indices of one array lead, added to where those of the arrays before it led (unless it
// is the first), and to an origin. Views: the indices, the origins.
[[kernel]] void index_offsets(const device uchar* indices, device long* offsets,
                              constant uint& is_first, constant IndexedAxis& axis,
                              constant Walk<2>& walk, constant JointExtent<2>* extents,
                              device Errors& errors, uint position [[thread_position_in_grid]]) {
  if (position >= walk.size) return;
  const Offsets<2> at = offsets_of(position, walk, extents);
  const long given = integer_at(indices, at.of[0], axis.kind);
  const bool is_wrong = is_outside(given, axis);
  if (is_wrong) report_wrong({true, position, given, at.of[0]}, axis, errors);
  device long& offset = offsets[axis.first + position];
  const long before = is_first ? at.of[1] : offset;
  offset = is_wrong || before == nowhere ? nowhere : before + followed(given, axis);
}

struct DynamicAxis {
  long stride;
  long room;  // the largest start that stays inside
};

// Where a slice starts: the offset that the starts along its axes make. One thread.
[[kernel]] void start_offset(const device uchar* starts, device long& offset,
                             constant DynamicAxis* axes, constant int& count, constant long& stride,
                             constant uint& kind, device Errors& errors) {
  long sum = 0;
  for (int k = 0; k < count; ++k) {
    const long start = integer_at(starts, k * stride, kind);
    const bool is_inside = start >= 0 && start <= axes[k].room;
    if (!is_inside) report(errors, k + 1, start);
    sum = !is_inside || sum == nowhere ? nowhere : sum + start * axes[k].stride;
  }
  offset = sum;
}
