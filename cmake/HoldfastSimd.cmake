# The sources in src/kernels/cpu/simd are compiled once per instruction set; the library picks one
# when it starts.
#
# Each copy sees HOLDFAST_SIMD_TARGET=baseline|avx2|avx512, a plain token that it uses as the name
# of its namespace. Such a file must keep everything it defines inside that namespace: an inline
# function shared by two copies would be merged by the linker, and the AVX-512 one could win on a
# machine without AVX-512.

set(HOLDFAST_SIMD_FLAGS_baseline)
set(HOLDFAST_SIMD_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(HOLDFAST_SIMD_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl ${HOLDFAST_SIMD_FLAGS_avx2})
if(HOLDFAST_X86_64)
  check_cxx_compiler_flag(-mprefer-vector-width=512 HOLDFAST_TAKES_PREFER_VECTOR_WIDTH)
  if(HOLDFAST_TAKES_PREFER_VECTOR_WIDTH)
    list(APPEND HOLDFAST_SIMD_FLAGS_avx512 -mprefer-vector-width=512)
  endif()
endif()

function(holdfast_add_simd_variants library)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/kernels/cpu/simd/*.cpp")
  if(NOT sources)
    return()
  endif()
  if(HOLDFAST_CORE_ONLY)
    set(optimisation -O1)
  else()
    set(optimisation -O3)
    # Written with vectors throughout: unrolling them further makes only the objects larger, and the
    # compiler slower.
    foreach(source reduce_arg reduce_order reduce_sum scan_lines)
      set_source_files_properties("${PROJECT_SOURCE_DIR}/src/kernels/cpu/simd/${source}.cpp" PROPERTIES COMPILE_OPTIONS -O2)
    endforeach()
  endif()
  foreach(variant IN LISTS HOLDFAST_SIMD_VARIANTS)
    set(objects holdfast_simd_${variant})
    add_library(${objects} OBJECT ${sources})
    holdfast_build_settings(${objects})
    set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF)
    # errno and floating-point traps keep loops over exp or a comparison from being vectorised;
    # nobody reads them here. -Wno-psabi: vectors are passed only between functions of one copy, so
    # the note about their ABI does not apply. g++ at -O1 cannot see that a block is filled before it
    # is read. -fno-ipa-ra: where g++ knows that a function it calls leaves vector registers alone, it
    # takes their upper halves to be clear after the call, and forgets the vzeroupper (g++ 12).
    target_compile_options(${objects} PRIVATE ${optimisation} -fno-math-errno -fno-trapping-math -Wno-psabi
                                              $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                                              $<$<CXX_COMPILER_ID:GNU>:-fno-ipa-ra>
                                              ${HOLDFAST_SIMD_FLAGS_${variant}})
    target_compile_definitions(${objects} PRIVATE HOLDFAST_SIMD_TARGET=${variant})
    target_include_directories(${objects} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
