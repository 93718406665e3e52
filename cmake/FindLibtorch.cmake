# SPDX-License-Identifier: Apache-2.0
# The PyTorch wheel as libtorch: imported target Libtorch::Libtorch from the wheel's own include and lib folders.
# The wheel's TorchConfig.cmake is not used: it stops when the wheel is a CUDA one and no CUDA toolkit is present.
#
# Looked for, in this order: the CMake or environment variable JOULEMARK_TORCH (the folder `torch` of a wheel, or of an unpacked
# libtorch), the newest ~/.cache/joulemark/venv-torch-* (a CUDA build first where there is an NVIDIA driver or
# JOULEMARK_TRAIN_CUDA is ON, a CPU build first elsewhere), and the torch that `python3` imports.
#
# Sets Libtorch_FOUND, Libtorch_ROOT, Libtorch_VERSION, Libtorch_CUDA (whether it is a CUDA build) and, for
# those, Libtorch_CUDA_INCLUDE_DIRS (CUDA's and NCCL's headers; empty with a reason in Libtorch_CUDA_MISSING).

set(JOULEMARK_TORCH "" CACHE PATH "Folder of libtorch: .../site-packages/torch of a PyTorch wheel")

set(_candidates ${JOULEMARK_TORCH} $ENV{JOULEMARK_TORCH})
if(NOT _candidates)
  file(GLOB _venvs LIST_DIRECTORIES true "$ENV{HOME}/.cache/joulemark/venv-torch-*/lib/python3*/site-packages/torch")
  list(SORT _venvs COMPARE NATURAL ORDER DESCENDING)
  set(_cuda_builds "")
  set(_cpu_builds "")
  foreach(_venv IN LISTS _venvs)
    if(EXISTS ${_venv}/lib/libtorch_cuda.so)
      list(APPEND _cuda_builds ${_venv})
    else()
      list(APPEND _cpu_builds ${_venv})
    endif()
  endforeach()
  if(JOULEMARK_TRAIN_CUDA STREQUAL "ON" OR EXISTS /dev/nvidiactl)
    set(_candidates ${_cuda_builds} ${_cpu_builds})
  else()
    set(_candidates ${_cpu_builds} ${_cuda_builds})
  endif()
endif()
if(NOT _candidates)
  # find_spec locates the package without running it: importing torch takes seconds.
  execute_process(COMMAND python3 -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                  OUTPUT_VARIABLE _candidates OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()

unset(Libtorch_ROOT)
foreach(_candidate IN LISTS _candidates)
  if(EXISTS ${_candidate}/lib/libtorch_cpu.so AND EXISTS ${_candidate}/include/torch/csrc/api/include/torch/torch.h)
    set(Libtorch_ROOT ${_candidate})
    break()
  endif()
endforeach()

if(Libtorch_ROOT)
  foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT Libtorch_VERSION AND EXISTS ${Libtorch_ROOT}/include/${_header})
      file(STRINGS ${Libtorch_ROOT}/include/${_header} _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      list(TRANSFORM _lines REPLACE ".* " "")
      list(JOIN _lines "." Libtorch_VERSION)
    endif()
  endforeach()
  set(Libtorch_CUDA OFF)
  if(EXISTS ${Libtorch_ROOT}/lib/libtorch_cuda.so)
    set(Libtorch_CUDA ON)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch REQUIRED_VARS Libtorch_ROOT VERSION_VAR Libtorch_VERSION)
if(NOT Libtorch_FOUND)
  return()
endif()

# One of libc10's exported names tells which std::string the wheel was built with.
file(STRINGS ${Libtorch_ROOT}/lib/libc10.so _cxx11 REGEX "NSt7__cxx1112basic_string" LIMIT_COUNT 1)
if(_cxx11)
  set(_abi 1)
else()
  set(_abi 0)
endif()

if(NOT TARGET Libtorch::Libtorch)
  add_library(Libtorch::Libtorch INTERFACE IMPORTED)
  set_target_properties(Libtorch::Libtorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${Libtorch_ROOT}/include;${Libtorch_ROOT}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=${_abi}")
  # CUDA's kernels register themselves when their library is loaded, so it must stay although no symbol is used.
  set(_libraries ${Libtorch_ROOT}/lib/libtorch.so ${Libtorch_ROOT}/lib/libtorch_cpu.so ${Libtorch_ROOT}/lib/libc10.so)
  if(Libtorch_CUDA)
    list(APPEND _libraries ${Libtorch_ROOT}/lib/libtorch_cuda.so ${Libtorch_ROOT}/lib/libc10_cuda.so)
  endif()
  target_link_options(Libtorch::Libtorch INTERFACE -Wl,-rpath,${Libtorch_ROOT}/lib)
  target_link_libraries(Libtorch::Libtorch INTERFACE -Wl,--no-as-needed ${_libraries} -Wl,--as-needed)
endif()

# Headers for the NCCL back end: from the CUDA toolkit or the pip packages beside torch.
if(Libtorch_CUDA)
  cmake_path(GET Libtorch_ROOT PARENT_PATH _site)
  find_program(Libtorch_NVCC nvcc)
  cmake_path(GET Libtorch_NVCC PARENT_PATH _nvcc_folder)
  # crt/ is what pip packages of the runtime can lack.
  find_path(Libtorch_CUDA_RUNTIME_INCLUDE crt/host_config.h
            PATHS ${_site}/nvidia/cu13/include ${_site}/nvidia/cuda_runtime/include ${CUDAToolkit_ROOT}/include
                  $ENV{CUDA_HOME}/include ${_nvcc_folder}/../include /usr/local/cuda/include)
  find_path(Libtorch_NCCL_INCLUDE nccl.h PATHS ${_site}/nvidia/nccl/include)
  mark_as_advanced(Libtorch_NVCC Libtorch_CUDA_RUNTIME_INCLUDE Libtorch_NCCL_INCLUDE)
  set(Libtorch_CUDA_INCLUDE_DIRS ${Libtorch_CUDA_RUNTIME_INCLUDE} ${Libtorch_NCCL_INCLUDE})
  if(NOT Libtorch_CUDA_RUNTIME_INCLUDE)
    set(Libtorch_CUDA_INCLUDE_DIRS "")
    set(Libtorch_CUDA_MISSING "crt/host_config.h (install the CUDA toolkit, or the pip package nvidia-cuda-crt beside torch)")
  elseif(NOT Libtorch_NCCL_INCLUDE)
    set(Libtorch_CUDA_INCLUDE_DIRS "")
    set(Libtorch_CUDA_MISSING "nccl.h (install the pip package nvidia-nccl that this torch names, beside it)")
  endif()
endif()
