#include "mlx/backend/common/utils.h"

#include <dlfcn.h>

#include <cstring>

#include <holdfast/encoder.h>

#include "mlx/backend/common/broadcasting.h"
#include "mlx/backend/common/copy.h"
#include "mlx/backend/common/slicing.h"

namespace holdfast {

std::filesystem::path current_binary_dir() {
  static const std::filesystem::path folder = [] {
    Dl_info info{};
    std::error_code error;
    if (!dladdr(reinterpret_cast<void*>(&current_binary_dir), &info))
      return std::filesystem::current_path();
    auto file = std::filesystem::canonical(info.dli_fname, error);
    return error ? std::filesystem::current_path() : file.parent_path();
  }();
  return folder;
}

// --- layouts ---

std::tuple<Shape, std::vector<Strides>> collapse_contiguous_dims(
    const Shape& shape, const std::vector<Strides>& strides, int64_t size_cap) {
  Shape merged;
  std::vector<Strides> walks(strides.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = !merged.empty() && int64_t{merged.back()} * shape[i] <= size_cap;
    for (size_t w = 0; w < walks.size() && joins; ++w) {
      joins = walks[w].back() == strides[w][i] * shape[i];
    }
    if (joins) {
      merged.back() *= shape[i];
      for (size_t w = 0; w < walks.size(); ++w) walks[w].back() = strides[w][i];
    } else {
      merged.push_back(shape[i]);
      for (size_t w = 0; w < walks.size(); ++w) walks[w].push_back(strides[w][i]);
    }
  }
  if (merged.empty()) {
    merged.push_back(1);
    for (Strides& walk : walks) walk.push_back(0);
  }
  return {merged, walks};
}

std::tuple<Shape, std::vector<Strides>> collapse_contiguous_dims(const std::vector<array>& xs,
                                                                 size_t size_cap) {
  std::vector<Strides> strides;
  for (const array& x : xs) strides.push_back(x.strides());
  return collapse_contiguous_dims(xs.front().shape(), strides, static_cast<int64_t>(size_cap));
}

std::pair<Shape, Strides> collapse_contiguous_dims(const Shape& shape, const Strides& strides,
                                                   int64_t size_cap) {
  auto [merged, walks] = collapse_contiguous_dims(shape, std::vector<Strides>{strides}, size_cap);
  return {merged, walks.front()};
}

std::pair<Shape, Strides> collapse_contiguous_dims(const array& a, int64_t size_cap) {
  return collapse_contiguous_dims(a.shape(), a.strides(), size_cap);
}

ContiguousIterator::ContiguousIterator(const Shape& shape, const Strides& strides, int) {
  auto [merged, walks] = collapse_contiguous_dims(shape, std::vector<Strides>{strides});
  shape_ = merged;
  strides_ = walks.front();
  position_ = Shape(shape_.size(), 0);
}

void ContiguousIterator::seek(int64_t element) {
  loc = 0;
  for (size_t i = shape_.size(); i-- > 0;) {
    position_[i] = static_cast<ShapeElem>(element % shape_[i]);
    loc += position_[i] * strides_[i];
    element /= shape_[i];
  }
}

std::pair<bool, Strides> prepare_reshape(const array& in, const array& out) {
  if (in.flags().row_contiguous || in.size() == 0)
    return {false, make_contiguous_strides(out.shape())};
  auto [shape, strides] = collapse_contiguous_dims(in);
  // Each stretch of the input that is walked with one stride is split into dimensions of the
  // output.
  Strides result;
  size_t at = 0;
  int64_t left = shape[0];
  for (int64_t size : out.shape()) {
    if (size == 1) {
      result.push_back(left * strides[at]);
      continue;
    }
    if (left == 1 && at + 1 < shape.size()) left = shape[++at];
    if (left % size != 0) return {true, {}};
    left /= size;
    result.push_back(left * strides[at]);
  }
  return {false, result};
}

void shared_buffer_reshape(const array& in, const Strides& out_strides, array& out) {
  auto [_, is_row, is_column] = check_contiguity(out.shape(), out_strides);
  array::Flags flags = in.flags();
  flags.row_contiguous = is_row;
  flags.col_contiguous = is_column;
  out.copy_shared_buffer(in, out_strides, flags, in.data_size());
}

std::tuple<int64_t, Strides> prepare_slice(const array& in, const Shape& start,
                                           const Shape& strides) {
  int64_t first = 0;
  Strides steps(in.ndim());
  for (size_t i = 0; i < in.ndim(); ++i) {
    first += start[i] * in.strides()[i];
    steps[i] = in.strides()[i] * strides[i];
  }
  return {first, steps};
}

void shared_buffer_slice(const array& in, const Strides& out_strides, int64_t offset,
                         size_t data_size, array& out) {
  auto [dense_size, is_row, is_column] = check_contiguity(out.shape(), out_strides);
  array::Flags flags = in.flags();
  flags.contiguous = dense_size == data_size;
  flags.row_contiguous = is_row;
  flags.col_contiguous = is_column;
  out.copy_shared_buffer(in, out_strides, flags, data_size, offset);
}

void broadcast(const array& in, array& out) {
  if (out.size() == 0) return out.set_data(allocator::malloc(0));
  Strides strides(out.ndim(), 0);
  const size_t added = out.ndim() - in.ndim();
  for (size_t i = 0; i < in.ndim(); ++i) {
    strides[added + i] = in.shape()[i] == 1 ? 0 : in.strides()[i];
  }
  array::Flags flags = in.flags();
  if (out.size() > in.size()) flags.row_contiguous = flags.col_contiguous = false;
  out.copy_shared_buffer(in, strides, flags, in.data_size());
}

// --- grids ---

Dims get_block_dims_common(int dim0, int dim1, int dim2, int power) {
  int powers[3] = {0, 0, 0};
  const int dims[3] = {dim0, dim1, dim2};
  // One more power of two for each dimension in turn, while it still has threads to give.
  for (int sum = 0, before = -1; sum < power && sum != before;) {
    before = sum;
    for (int i = 0; i < 3 && sum < power; ++i) {
      if (dims[i] >= (1 << (powers[i] + 1))) {
        ++powers[i];
        ++sum;
      }
    }
  }
  return {1u << powers[0], 1u << powers[1], 1u << powers[2]};
}

Dims get_2d_grid_dims_common(const Shape& shape, const Strides& strides) {
  uint64_t columns = 1, rows = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (strides[i] == 0) continue;  // the same elements again
    auto size = static_cast<uint64_t>(shape[i]);
    (columns * size <= UINT32_MAX ? columns : rows) *= size;
  }
  if (rows > UINT32_MAX)
    throw std::runtime_error("[get_2d_grid_dims] the grid has too many threads");
  if (rows > columns) std::swap(rows, columns);
  return {static_cast<uint32_t>(columns), static_cast<uint32_t>(rows), 1};
}

// --- copies ---

namespace {

template <typename From, typename To>
void copy_elements(const From* from, ContiguousIterator read, To* to, ContiguousIterator write,
                   size_t count) {
  for (size_t i = 0; i < count; ++i) {
    to[write.loc] = static_cast<To>(from[read.loc]);
    read.step();
    write.step();
  }
}

}  // namespace

void copy_cpu_inplace(const array& source, array& destination, CopyType type, Stream stream) {
  const size_t count = type == CopyType::Vector ? source.data_size() : destination.size();
  if (count == 0) return;
  Shape flat{static_cast<ShapeElem>(source.data_size())};
  ContiguousIterator read =
      type == CopyType::Vector ? ContiguousIterator(flat, {1}, 1)
      : type == CopyType::Scalar
          ? ContiguousIterator(destination.shape(), Strides(destination.ndim(), 0), 1)
          : ContiguousIterator(source);
  ContiguousIterator write =
      type == CopyType::Vector ? ContiguousIterator(flat, {1}, 1) : ContiguousIterator(destination);
  Encoder& encoder = Encoder::of(stream);
  encoder.input(source);
  encoder.output(destination);
  dispatch_dtype(source.dtype(), [&](auto from_type) {
    dispatch_dtype(destination.dtype(), [&](auto to_type) {
      using From = typename decltype(from_type)::type;
      using To = typename decltype(to_type)::type;
      encoder.host_callback("copy_cpu",
                            [from = source.data<From>(), to = destination.data<To>(), read, write,
                             count] { copy_elements(from, read, to, write, count); });
    });
  });
}

void copy_cpu(const array& source, array& destination, CopyType type, Stream stream) {
  if (set_copy_output_data(source, destination, type)) return;
  copy_cpu_inplace(source, destination, type == CopyType::GeneralGeneral ? CopyType::General : type,
                   stream);
}

array contiguous_copy_cpu(const array& source, Stream stream) {
  array copied(source.shape(), source.dtype(), nullptr, {});
  copy_cpu(source, copied, CopyType::General, stream);
  return copied;
}

}  // namespace holdfast
