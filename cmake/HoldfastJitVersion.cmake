# cmake -DSOURCE_DIR=… -DLLVM_VERSION=… -DOUTPUT=folder -P HoldfastJitVersion.cmake
#
# Writes the header that names the version of the kernel compiler, holdfast_jit_version.h: a hash over everything that its results depend on.
# The disk cache of kernels compares it without loading the compiler. And holdfast_aot_version.h, the same for what holdfast-aot makes of them.
file(GLOB_RECURSE inputs "${SOURCE_DIR}/src/msl/*" "${SOURCE_DIR}/src/devices/cpu/jit/compiler/*"
     "${SOURCE_DIR}/src/devices/cuda/compiler/*")
list(APPEND inputs "${SOURCE_DIR}/src/devices/cpu/jit/kernel_abi.h" "${SOURCE_DIR}/src/devices/cpu/jit/compiler.h"
     "${SOURCE_DIR}/src/devices/cuda/ptx_kernel.h" "${SOURCE_DIR}/cmake/HoldfastJit.cmake")

# Sets `version` to a hash over `start` and the files.
function(hash_files version start)
  list(SORT ARGN)
  set(hashes "")
  foreach(input IN LISTS ARGN)
    file(SHA256 "${input}" hash)
    file(RELATIVE_PATH name "${SOURCE_DIR}" "${input}")
    string(APPEND hashes "${name} ${hash}\n")
  endforeach()
  string(SHA256 hash "${start}\n${hashes}")
  string(SUBSTRING "${hash}" 0 32 hash)
  set(${version} "${hash}" PARENT_SCOPE)
endfunction()

# Left alone when nothing changed, so that nothing is compiled again.
function(write_version file name version)
  set(text "#define ${name} \"${version}\"\n")
  set(old "")
  if(EXISTS "${OUTPUT}/${file}")
    file(READ "${OUTPUT}/${file}" old)
  endif()
  if(NOT "${old}" STREQUAL "${text}")
    file(WRITE "${OUTPUT}/${file}" "${text}")
  endif()
endfunction()

hash_files(jit_version "llvm ${LLVM_VERSION}" ${inputs})
write_version(holdfast_jit_version.h HOLDFAST_JIT_VERSION "llvm-${LLVM_VERSION}-${jit_version}")

file(GLOB inputs "${SOURCE_DIR}/tools/aot/*")
foreach(name devices/cuda/compiled_kernel devices/cpu/jit/kernel_format devices/image_writer)
  list(APPEND inputs "${SOURCE_DIR}/src/${name}.h" "${SOURCE_DIR}/src/${name}.cpp")
endforeach()
hash_files(aot_version "jit ${jit_version}" ${inputs})
write_version(holdfast_aot_version.h HOLDFAST_AOT_VERSION "${aot_version}")
