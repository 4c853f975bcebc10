# The passes over rows are compiled for each instruction set; contraction would give each its own bits.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/engine/sample/row_passes_base.cc PROPERTIES COMPILE_OPTIONS
  "-O3;-ffp-contract=off")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/engine/sample/row_passes_avx2.cc PROPERTIES COMPILE_OPTIONS
    "-O3;-ffp-contract=off;-mavx2")
endif()
