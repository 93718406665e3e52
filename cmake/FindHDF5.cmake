# SPDX-License-Identifier: Apache-2.0
# HDF5's C library as HDF5::HDF5, where Debian has it or where an unpacked package lies below CMAKE_PREFIX_PATH. CMake's own module asks
# the compiler wrapper h5cc, which such a package does not bring, and links what only the library itself needs.
find_path(HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HDF5 REQUIRED_VARS HDF5_LIBRARY HDF5_INCLUDE_DIR)
if(HDF5_FOUND AND NOT TARGET HDF5::HDF5)
  add_library(HDF5::HDF5 UNKNOWN IMPORTED)
  set_target_properties(HDF5::HDF5 PROPERTIES IMPORTED_LOCATION ${HDF5_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HDF5_INCLUDE_DIR})
endif()
mark_as_advanced(HDF5_INCLUDE_DIR HDF5_LIBRARY)
