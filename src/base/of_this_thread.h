// Objects that each thread has one of.
//
// Code of this library may run on a thread after its thread_local objects have been destroyed: in
// destructors of the program's own objects, and where a thread that ends has to run its work
// itself. A destroyed object cannot say that it is gone, since compilers drop what a destructor
// stores in it (g++: -flifetime-dse): whoever used it would free or write memory of others.
#pragma once

#include <utility>

#include "base/sync.h"

namespace holdfast {

// The calling thread's T: made when the thread first asks for it, destroyed when the thread ends,
// and made again for whoever asks after that.
template <class T>
T& of_this_thread() {
  static constinit thread_local T* mine = nullptr;
  if (!mine) [[unlikely]] {
    mine = new T;
    sync::at_thread_exit([](void*) { delete std::exchange(mine, nullptr); }, nullptr);
  }
  return *mine;
}

}  // namespace holdfast
