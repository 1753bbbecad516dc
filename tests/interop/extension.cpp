/* What a C++ library bound by nanobind does with tensors: takes, reads, writes, gives. */
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

namespace nb = nanobind;

using Any = nb::ndarray<>;
using ReadOnly = nb::ndarray<nb::ro>;
using Given = nb::ndarray<nb::array_api>;

static int freed = 0;

/* Keeps `array` until Python drops it. */
template <typename Array>
static nb::capsule keep(const Array &array) {
  return nb::capsule(new Array(array),
                     [](void *kept) noexcept { delete static_cast<Array *>(kept); });
}

/* A new array over the memory of the given one, as a library returns what it holds. */
static Given pass_on(const Any &array) {
  std::vector<size_t> shape;
  for (size_t i = 0; i < array.ndim(); i++) shape.push_back(array.shape(i));
  return Given(array.data_handle(), array.ndim(), shape.data(), keep(array),
               array.stride_ptr(), array.dtype(), array.device_type(),
               array.device_id(), 0, array.byte_offset());
}

/* float32 memory of this module, counted when it is freed. */
static Given zeros(size_t rows, size_t columns) {
  auto *memory = new float[rows * columns]();
  nb::capsule owner(memory, [](void *owned) noexcept {
    delete[] static_cast<float *>(owned);
    freed++;
  });
  return Given(memory, {rows, columns}, owner, {}, nb::dtype<float>());
}

NB_MODULE(interop_extension, module) {
  module.def("pass_on", &pass_on);
  module.def("zeros", &zeros);
  module.def("freed", [] { return freed; });
  module.def("address", [](const ReadOnly &array) {
    return reinterpret_cast<uintptr_t>(array.data());
  });
  module.def("sum", [](const nb::ndarray<const float, nb::ndim<2>> &array) {
    double sum = 0;
    for (size_t i = 0; i < array.shape(0); i++) {
      for (size_t j = 0; j < array.shape(1); j++) sum += array(i, j);
    }
    return sum;
  });
  module.def("double_it", [](const nb::ndarray<float, nb::ndim<2>, nb::c_contig> &a) {
    for (size_t i = 0; i < a.size(); i++) a.data()[i] *= 2;
  });
}
