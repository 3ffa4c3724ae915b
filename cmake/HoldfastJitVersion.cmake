# cmake -DSOURCE_DIR=… -DLLVM_VERSION=… -DOUTPUT=… -P HoldfastJitVersion.cmake
#
# Writes the header that names the version of the kernel compiler: a hash over everything that its results depend on. The
# disk cache of kernels compares it without loading the compiler.
file(GLOB_RECURSE inputs "${SOURCE_DIR}/src/msl/*" "${SOURCE_DIR}/src/devices/cpu/jit/compiler/*"
     "${SOURCE_DIR}/src/devices/cuda/compiler/*")
list(APPEND inputs "${SOURCE_DIR}/src/devices/cpu/jit/kernel_abi.h" "${SOURCE_DIR}/src/devices/cpu/jit/compiler.h"
     "${SOURCE_DIR}/src/devices/cuda/ptx_kernel.h" "${SOURCE_DIR}/cmake/HoldfastJit.cmake")
list(SORT inputs)
set(hashes "")
foreach(input IN LISTS inputs)
  file(SHA256 "${input}" hash)
  file(RELATIVE_PATH name "${SOURCE_DIR}" "${input}")
  string(APPEND hashes "${name} ${hash}\n")
endforeach()
string(SHA256 version "llvm ${LLVM_VERSION}\n${hashes}")
string(SUBSTRING "${version}" 0 32 version)
set(text "#define HOLDFAST_JIT_VERSION \"llvm-${LLVM_VERSION}-${version}\"\n")
# Left alone when nothing changed, so that nothing is compiled again.
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE "${OUTPUT}" "${text}")
endif()
