# Finds the serial OpenBLAS and makes OpenBLASSerial::openblas. Installed with the package, so that
# a consumer finds it the same way.
#
# Serial, because our own pool runs tiles of a product: a threaded OpenBLAS starts threads when it
# is loaded and its results change with their number. Debian keeps the serial build in a folder of
# its own beside the others.
#
# Static by default (HOLDFAST_OPENBLAS_STATIC). All Debian builds share the name libopenblas.so.0: a
# program that loses its run path (an installed one, say) or that loads another user of OpenBLAS
# first would silently run the threaded one. It also starts faster (1.0 ms against 2.5 ms for a
# small program: no libgfortran to load). It costs 25 MB in each program and a second to link it, so
# the presets that only run tests link the shared one, by its full path.

if(TARGET OpenBLASSerial::openblas)
  set(OpenBLASSerial_FOUND TRUE)
  return()
endif()

if(NOT DEFINED HOLDFAST_OPENBLAS_STATIC)
  set(HOLDFAST_OPENBLAS_STATIC ON)
endif()

if(HOLDFAST_OPENBLAS_ROOT)
  set(_openblas_include_places "${HOLDFAST_OPENBLAS_ROOT}/include" "${HOLDFAST_OPENBLAS_ROOT}/include/openblas")
  set(_openblas_library_places "${HOLDFAST_OPENBLAS_ROOT}/lib" "${HOLDFAST_OPENBLAS_ROOT}/lib64")
else()
  set(_openblas_include_places "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial")
  set(_openblas_library_places "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial")
endif()
if(HOLDFAST_OPENBLAS_STATIC)
  set(_openblas_name libopenblas.a)
else()
  set(_openblas_name libopenblas.so)
endif()

# NO_DEFAULT_PATH: the default places hold whichever build the system's alternatives point to.
# NO_CACHE: changing one of the two options above takes effect in an existing build folder.
find_path(OpenBLASSerial_INCLUDE_DIR cblas.h PATHS ${_openblas_include_places}
          NO_DEFAULT_PATH NO_CACHE)
find_file(OpenBLASSerial_LIBRARY ${_openblas_name} PATHS ${_openblas_library_places}
          NO_DEFAULT_PATH NO_CACHE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  OpenBLASSerial
  REQUIRED_VARS OpenBLASSerial_LIBRARY OpenBLASSerial_INCLUDE_DIR
  REASON_FAILURE_MESSAGE
    "Holdfast needs the serial OpenBLAS (cblas.h and ${_openblas_name}). On Debian: apt-get install libopenblas-serial-dev. Elsewhere: -DHOLDFAST_OPENBLAS_ROOT=<prefix of an OpenBLAS built with USE_THREAD=0>."
)

if(OpenBLASSerial_FOUND)
  add_library(OpenBLASSerial::openblas UNKNOWN IMPORTED)
  set_target_properties(
    OpenBLASSerial::openblas PROPERTIES IMPORTED_LOCATION "${OpenBLASSerial_LIBRARY}"
                                        INTERFACE_INCLUDE_DIRECTORIES "${OpenBLASSerial_INCLUDE_DIR}"
                                        INTERFACE_LINK_LIBRARIES m)
  if(HOLDFAST_OPENBLAS_ROOT AND NOT CMAKE_CROSSCOMPILING)
    # Someone else's build: ask it. (Debian's says what it is by its folder.)
    include(CheckCXXSourceRuns)
    set(CMAKE_REQUIRED_LIBRARIES OpenBLASSerial::openblas)
    check_cxx_source_runs("#include <cblas.h>\nint main() { return openblas_get_parallel() == OPENBLAS_SEQUENTIAL ? 0 : 1; }"
                          HOLDFAST_OPENBLAS_IS_SERIAL)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(NOT HOLDFAST_OPENBLAS_IS_SERIAL)
      message(FATAL_ERROR "${OpenBLASSerial_LIBRARY} is a threaded OpenBLAS; Holdfast needs one built with USE_THREAD=0")
    endif()
  endif()
endif()
