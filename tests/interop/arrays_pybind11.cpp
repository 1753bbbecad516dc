/* What a library bound by pybind11 does with the arrays that it is given. */
#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vector>

namespace py = pybind11;

using Any = py::array_t<double>; /* converts what has another dtype */
using Contiguous = py::array_t<double, py::array::c_style | py::array::forcecast>;

template <typename Array>
static double total(const Array &x) {
  auto values = x.template unchecked<1>();
  double found = 0;
  for (py::ssize_t i = 0; i < values.shape(0); i++) found += values(i);
  return found;
}

static void double_it(Any x) {
  auto values = x.mutable_unchecked<1>();
  for (py::ssize_t i = 0; i < values.shape(0); i++) values(i) *= 2;
}

static double total_buffer(const py::buffer &x) {
  py::buffer_info info = x.request();
  if (!info.item_type_is_equivalent_to<double>() || info.ndim != 1) {
    throw py::type_error("one dimension of double is supported, not " + info.format);
  }
  double found = 0;
  for (py::ssize_t i = 0; i < info.shape[0]; i++) {
    found += *reinterpret_cast<double *>(static_cast<char *>(info.ptr) +
                                         i * info.strides[0]);
  }
  return found;
}

static void double_buffer(const py::buffer &x) {
  py::buffer_info info = x.request(/*writable=*/true);
  for (py::ssize_t i = 0; i < info.shape[0]; i++) {
    *reinterpret_cast<double *>(static_cast<char *>(info.ptr) + i * info.strides[0]) *=
        2;
  }
}

PYBIND11_MODULE(arrays_pybind11, module) {
  module.def("total", &total<Any>);
  module.def("total_contiguous", &total<Contiguous>);
  module.def("total_ndarray", &total<Any>, py::arg("x").noconvert());
  module.def("double_it", &double_it);
  module.def("total_buffer", &total_buffer);
  module.def("double_buffer", &double_buffer);
  module.def("same", [](Any x) { return x; });
  module.def("untyped", [](py::array x) { return x; });
  module.def("squared", py::vectorize([](double x) { return x * x; }));
  module.def("reversed", [](const std::vector<double> &x) {
    return std::vector<double>(x.rbegin(), x.rend());
  });
  module.def("conjugate", [](const py::array_t<std::complex<double>> &x) {
    return std::conj(x.at(1));
  });
  module.def("scaled", [](const Any &x, double factor, int times) {
    return total(x) * factor * times;
  });
}
