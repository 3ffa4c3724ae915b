#include "devices/cuda/memory.h"

#include <algorithm>
#include <mutex>

namespace holdfast::cuda {
namespace {

constexpr size_t smallest_allocation = size_t{1} << 20, largest_slab = size_t{2} << 20,
                 pieces_of_slab = 64;
// The storage of a lost GPU. No address that the driver gives.
constexpr Address lost_address = 4096;

}  // namespace

GpuMemory::GpuMemory(Gpu& gpu) : gpu_(gpu) {}

Address GpuMemory::take_piece(size_t capacity) {
  std::vector<Slabs::iterator>& with_pieces = with_pieces_[capacity];
  if (with_pieces.empty()) {
    const size_t bytes = std::min(largest_slab, capacity * pieces_of_slab);
    const size_t count = bytes / capacity;
    std::vector<Address> free;
    free.reserve(count);
    with_pieces.reserve(slabs_.size() + 1);  // releasing must not fail
    Address base = 0;
    gpu_.driver().allocate(&base, count * capacity);
    try {
      auto slab = slabs_.emplace(base, Slab{capacity, count, {}}).first;
      for (size_t i = count; i-- > 0;) free.push_back(base + i * capacity);
      slab->second.free = std::move(free);
      with_pieces.push_back(slab);
    } catch (...) {
      gpu_.driver().release.attempt(base);
      throw;
    }
  }
  Slabs::iterator slab = with_pieces.back();
  const Address piece = slab->second.free.back();
  slab->second.free.pop_back();
  if (slab->second.free.empty()) with_pieces.pop_back();
  return piece;
}

void GpuMemory::release_piece(Address address) {
  auto slab = std::prev(slabs_.upper_bound(address));
  std::vector<Slabs::iterator>& with_pieces = with_pieces_[slab->second.piece];
  if (slab->second.free.empty()) with_pieces.push_back(slab);
  slab->second.free.push_back(address);
  if (slab->second.free.size() < slab->second.count) return;
  std::erase(with_pieces, slab);
  gpu_.driver().release.attempt(slab->first);
  slabs_.erase(slab);
}

bool GpuMemory::take(size_t capacity, exec::Storage& storage) noexcept {
  storage.bytes = nullptr;
  try {
    if (!gpu_.is_lost()) gpu_.use();
    Address address = lost_address;
    if (!gpu_.is_lost()) {
      if (capacity < smallest_allocation) {
        address = take_piece(capacity);
      } else {
        gpu_.driver().allocate(&address, capacity);
      }
    }
    storage.address = reinterpret_cast<void*>(address);
    return true;
  } catch (const std::exception& error) {
    gpu_.look_at(error);
  }
  if (!gpu_.is_lost()) return false;
  storage.address = reinterpret_cast<void*>(lost_address);
  return true;
}

void GpuMemory::release(exec::Storage& storage) noexcept {
  const auto address = reinterpret_cast<Address>(storage.address);
  if (address == lost_address || !gpu_.can_release() || !gpu_.try_to_use()) return;
  if (storage.capacity >= smallest_allocation) {
    gpu_.driver().release.attempt(address);
    return;
  }
  release_piece(address);
}

// Calls `copy` with a staging that no other thread uses.
template <class Copy>
void GpuMemory::copy(Copy copy) {
  if (gpu_.is_lost()) gpu_.throw_loss();
  std::unique_ptr<Staging> staging;
  {
    std::lock_guard guard(mutex_);
    if (!spare_.empty()) {
      staging = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  try {
    gpu_.use();
    if (!staging) staging = std::make_unique<Staging>(gpu_);
    copy(*staging);
  } catch (const std::exception& error) {
    gpu_.look_at(error);
    if (gpu_.is_lost()) gpu_.throw_loss();
    throw;
  }
  std::lock_guard guard(mutex_);
  spare_.push_back(std::move(staging));
}

void GpuMemory::read(const exec::Storage& source, size_t begin, void* target, size_t bytes) {
  if (bytes == 0) return;
  copy([&](Staging& staging) {
    staging.download(reinterpret_cast<Address>(source.address) + begin, target, bytes);
  });
}

void GpuMemory::write(exec::Storage& target, size_t begin, const void* source, size_t bytes) {
  if (bytes == 0) return;
  copy([&](Staging& staging) {
    staging.upload(reinterpret_cast<Address>(target.address) + begin, source, bytes);
    staging.synchronize();
  });
}

}  // namespace holdfast::cuda
