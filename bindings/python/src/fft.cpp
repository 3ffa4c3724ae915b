// holdfast.core.fft
#include <holdfast/fft.h>

#include "arguments.h"
#include "ops.h"

namespace holdfast::python {

namespace {

fft::FFTNorm norm_at(Arguments& a, int place) {
  std::string name = a.text(place);
  if (name == "backward") return fft::FFTNorm::Backward;
  if (name == "ortho") return fft::FFTNorm::Ortho;
  if (name == "forward") return fft::FFTNorm::Forward;
  raise(PyExc_ValueError, "[fft] norm must be backward, ortho or forward, got " + name);
}

using Many = array (*)(const array&, const Shape&, const std::vector<int>&, fft::FFTNorm,
                       StreamOrDevice);
using Some = array (*)(const array&, const std::vector<int>&, fft::FFTNorm, StreamOrDevice);
using Whole = array (*)(const array&, fft::FFTNorm, StreamOrDevice);

template <Many many, Some some>
PyObject* one_axis(Arguments& a) {
  std::vector<int> axis{a.integer(2)};
  fft::FFTNorm norm = norm_at(a, 3);
  return give(a.is_none(1) ? some(a.array_at(0), axis, norm, a.stream(4))
                           : many(a.array_at(0), Shape{a.integer(1)}, axis, norm, a.stream(4)));
}

template <Many many, Some some, Whole whole>
PyObject* axes(Arguments& a) {
  array x = a.array_at(0);
  fft::FFTNorm norm = norm_at(a, 3);
  StreamOrDevice s = a.stream(4);
  std::optional<std::vector<int>> places = a.optional_integers(2);
  if (a.is_none(1)) return give(places ? some(x, *places, norm, s) : whole(x, norm, s));
  Shape sizes = a.shape(1);
  if (!places) raise(PyExc_ValueError, "[fft] s says lengths of axes, so axes must be given, too");
  return give(many(x, sizes, *places, norm, s));
}

template <array (*some)(const array&, const std::vector<int>&, StreamOrDevice),
          array (*whole)(const array&, StreamOrDevice)>
PyObject* shift(Arguments& a) {
  std::optional<std::vector<int>> places = a.optional_integers(1);
  return give(places ? some(a.array_at(0), *places, a.stream(2))
                     : whole(a.array_at(0), a.stream(2)));
}

#define ONE "(a, n=None, axis=-1, norm='backward', stream=None)"
#define TWO "(a, s=None, axes=(-2, -1), norm='backward', stream=None)"
#define ALL "(a, s=None, axes=None, norm='backward', stream=None)"
#define LINE "mx.array([1.0, 2.0, 4.0, 3.0])"
#define PLANE "mx.array([[1.0, 2.0], [4.0, 3.0]])"
#define FORMS(name, summary)                                                                \
  {#name, ONE, summary " along an axis.",                                                   \
   "mx.fft." #name "(" LINE ")\nmx.fft." #name "(" LINE ", n=3, norm=\"ortho\")",           \
   one_axis<&fft::name##n, &fft::name##n>},                                                 \
      {#name "2", TWO, summary " along two axes.", "mx.fft." #name "2(" PLANE ")",          \
       axes<&fft::name##n, &fft::name##n, &fft::name##n>},                                  \
  {                                                                                         \
    #name "n", ALL, summary " along several axes, or all.", "mx.fft." #name "n(" PLANE ")", \
        axes<&fft::name##n, &fft::name##n, &fft::name##n>                                   \
  }
constexpr Row rows[] = {
    FORMS(fft, "The Fourier transform"),
    FORMS(ifft, "The inverse Fourier transform"),
    FORMS(rfft, "The Fourier transform of real numbers, of which half is kept,"),
    FORMS(irfft, "The inverse of rfft"),
    {"fftfreq", "(n, d=1.0, stream=None)", "The frequencies of the elements of fft.",
     "mx.fft.fftfreq(5)",
     [](Arguments& a) { return give(fft::fftfreq(a.integer(0), a.real(1), a.stream(2))); }},
    {"rfftfreq", "(n, d=1.0, stream=None)", "The frequencies of the elements of rfft.",
     "mx.fft.rfftfreq(5, 0.5)",
     [](Arguments& a) { return give(fft::rfftfreq(a.integer(0), a.real(1), a.stream(2))); }},
    {"fftshift", "(a, axes=None, stream=None)", "Frequency zero moved to the middle.",
     "mx.fft.fftshift(mx.arange(5))", shift<&fft::fftshift, &fft::fftshift>},
    {"ifftshift", "(a, axes=None, stream=None)", "The inverse of fftshift.",
     "mx.fft.ifftshift(mx.arange(5))", shift<&fft::ifftshift, &fft::ifftshift>},
};
#undef ONE
#undef TWO
#undef ALL
#undef LINE
#undef PLANE
#undef FORMS

}  // namespace

void add_fft(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
