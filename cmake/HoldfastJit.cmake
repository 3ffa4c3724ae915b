# libholdfast-jit: the MSL front-end and the widening compiler, with clang and LLVM 19 behind them. A module that the
# library loads when the first kernel has to be compiled; it uses headers of the library, none of its code.
#
# Its sources: src/msl/frontend and src/devices/cpu/jit/compiler. Only they include LLVM.

find_package(LLVM 19 QUIET CONFIG HINTS /usr/lib/llvm-19)
if(LLVM_FOUND)
  find_library(HOLDFAST_CLANG_CPP clang-cpp HINTS "${LLVM_LIBRARY_DIR}" NO_DEFAULT_PATH)
  find_path(HOLDFAST_CLANG_INCLUDE clang/Frontend/CompilerInstance.h HINTS ${LLVM_INCLUDE_DIRS} NO_DEFAULT_PATH)
endif()
if(LLVM_FOUND AND HOLDFAST_CLANG_CPP AND HOLDFAST_CLANG_INCLUDE)
  set(HOLDFAST_HAVE_JIT ON)
else()
  set(HOLDFAST_HAVE_JIT OFF)
  message(STATUS "holdfast: no clang and LLVM 19 (llvm-19-dev libclang-19-dev libclang-cpp19-dev): "
                 "fast::metal_kernel is left out")
endif()

function(holdfast_add_jit)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/msl/frontend/*.cpp"
       "${PROJECT_SOURCE_DIR}/src/devices/cpu/jit/compiler/*.cpp")
  if(NOT sources)
    return()
  endif()
  add_library(holdfast-jit MODULE ${sources})
  holdfast_build_settings(holdfast-jit)
  target_compile_features(holdfast-jit PRIVATE cxx_std_20)
  target_include_directories(holdfast-jit PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_include_directories(holdfast-jit SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} "${HOLDFAST_CLANG_INCLUDE}")
  target_compile_definitions(holdfast-jit PRIVATE ${LLVM_DEFINITIONS})
  target_link_libraries(holdfast-jit PRIVATE "${HOLDFAST_CLANG_CPP}" LLVM)
  target_link_directories(holdfast-jit PRIVATE "${LLVM_LIBRARY_DIR}")
  set_target_properties(holdfast-jit PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
endfunction()
