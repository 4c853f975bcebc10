# Each kernel unit is compiled for its own instruction set; the rest of the tree stays at the base line of the architecture.
# No contraction: a multiply and an add that the source keeps apart round twice on every compiler.
set(vt_avx2 -mavx2 -mfma -mf16c)
set(vt_avx512 ${vt_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(vt_unit_flags -O3)
if(VLLM_SANITIZE)
  set(vt_unit_flags -O1)  # these units take minutes each to optimize with all that sanitizers put in
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the deliberately undefined operands of its own AVX-512 intrinsics for mistakes (GCC bug 105593).
  list(APPEND vt_unit_flags -Wno-uninitialized)
endif()
if(VLLM_FUZZ)
  # No target of fuzzing reaches the kernels, and clang needs minutes for each unit with all that it would instrument.
  list(APPEND vt_unit_flags -fno-sanitize=all -fno-profile-instr-generate -fno-coverage-mapping)
endif()
function(vt_unit name)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/vt/cpu/${name}.cc PROPERTIES COMPILE_OPTIONS
    "${vt_unit_flags};-ffp-contract=off;${ARGN}")
endfunction()
vt_unit(linear_avx2 ${vt_avx2})
vt_unit(linear_avx_vnni ${vt_avx2} -mavxvnni)
vt_unit(linear_avx512 ${vt_avx512})
vt_unit(linear_avx512_vnni ${vt_avx512} -mavx512vnni)
vt_unit(linear_avx512_bf16 ${vt_avx512} -mavx512bf16)
vt_unit(linear_amx ${vt_avx512} -mavx512vnni -mavx512bf16)
vt_unit(paged_attention_avx512_vnni ${vt_avx512} -mavx512vnni)
foreach(unit row_kernels paged_attention)
  vt_unit(${unit}_avx2 ${vt_avx2})
  vt_unit(${unit}_avx512 ${vt_avx512})
endforeach()
