// holdfast.core.linalg
#include <holdfast/linalg.h>
#include <holdfast/ops.h>

#include "arguments.h"
#include "ops.h"

namespace holdfast::python {

namespace {

template <array (*function)(const array&, StreamOrDevice)>
PyObject* one(Arguments& a) {
  return give(function(a.array_at(0), a.stream(1)));
}
template <std::pair<array, array> (*function)(const array&, StreamOrDevice)>
PyObject* two(Arguments& a) {
  return give_tuple(function(a.array_at(0), a.stream(1)));
}
template <array (*function)(const array&, bool, StreamOrDevice)>
PyObject* triangular(Arguments& a) {
  return give(function(a.array_at(0), a.truth(1), a.stream(2)));
}

PyObject* make_norm(Arguments& a) {
  array x = a.array_at(0);
  std::optional<std::vector<int>> axes = a.optional_integers(2);
  bool keepdims = a.truth(3);
  StreamOrDevice s = a.stream(4);
  if (a.is_none(1)) return give(linalg::norm(x, axes, keepdims, s));
  if (PyUnicode_Check(a.object(1))) return give(linalg::norm(x, a.text(1), axes, keepdims, s));
  return give(linalg::norm(x, a.real(1), axes, keepdims, s));
}

#define STREAM "*, stream=None)"
#define MATRIX "mx.array([[4.0, 1.0], [2.0, 3.0]])"
#define SYMMETRIC "mx.array([[4.0, 1.0], [1.0, 3.0]])"
#define CPU ", stream=mx.cpu)"
constexpr Row rows[] = {
    {"norm", "(a, /, ord=None, axis=None, keepdims=False, " STREAM,
     "The norm of vectors or matrices; `ord` is a number, \"fro\" or \"nuc\".",
     "mx.linalg.norm(" MATRIX ")\nmx.linalg.norm(" MATRIX ", axis=1)\n"
     "mx.linalg.norm(" MATRIX ", ord=\"fro\")\nmx.linalg.norm(" MATRIX
     ", ord=1, axis=0, keepdims=True)",
     make_norm},
    {"qr", "(a, " STREAM, "An orthogonal and an upper triangular matrix whose product is a.",
     "mx.linalg.qr(" MATRIX CPU, two<&linalg::qr>},
    {"svd", "(a, compute_uv=True, " STREAM,
     "The singular value decomposition: U, S, Vt; or S alone.",
     "mx.linalg.svd(" MATRIX ", compute_uv=False" CPU,
     [](Arguments& a) {
       std::vector<array> parts = linalg::svd(a.array_at(0), a.truth(1), a.stream(2));
       return parts.size() == 1 ? give(std::move(parts[0])) : give_tuple(std::move(parts));
     }},
    {"inv", "(a, " STREAM, "The inverse.", "mx.linalg.inv(" MATRIX CPU, one<&linalg::inv>},
    {"tri_inv", "(a, upper=False, " STREAM, "The inverse of a triangular matrix.",
     "mx.linalg.tri_inv(mx.array([[2.0, 0.0], [1.0, 4.0]])" CPU, triangular<&linalg::tri_inv>},
    {"cholesky", "(a, upper=False, " STREAM, "The triangular root of a positive definite matrix.",
     "mx.linalg.cholesky(" SYMMETRIC CPU, triangular<&linalg::cholesky>},
    {"cholesky_inv", "(a, upper=False, " STREAM,
     "The inverse of the matrix of which a is the root.",
     "mx.linalg.cholesky_inv(mx.array([[2.0, 0.0], [1.0, 4.0]])" CPU,
     triangular<&linalg::cholesky_inv>},
    {"pinv", "(a, " STREAM, "The pseudo-inverse.",
     "mx.linalg.pinv(mx.array([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]])" CPU, one<&linalg::pinv>},
    {"lu", "(a, " STREAM, "Row pivots, and the factors L and U.", "mx.linalg.lu(" MATRIX CPU,
     [](Arguments& a) { return give_tuple(linalg::lu(a.array_at(0), a.stream(1))); }},
    {"lu_factor", "(a, " STREAM, "The factors L and U in one matrix, and the pivots.",
     "mx.linalg.lu_factor(" MATRIX CPU, two<&linalg::lu_factor>},
    {"solve", "(a, b, " STREAM, "x with a @ x = b.",
     "mx.linalg.solve(" MATRIX ", mx.array([1.0, 2.0])" CPU,
     [](Arguments& a) { return give(linalg::solve(a.array_at(0), a.array_at(1), a.stream(2))); }},
    {"solve_triangular", "(a, b, *, upper=False, stream=None)", "x with a @ x = b, a triangular.",
     "mx.linalg.solve_triangular(mx.array([[2.0, 0.0], [1.0, 4.0]]), mx.array([1.0, 2.0])" CPU,
     [](Arguments& a) {
       return give(linalg::solve_triangular(a.array_at(0), a.array_at(1), a.truth(2), a.stream(3)));
     }},
    {"cross", "(a, b, axis=-1, " STREAM, "The cross product.",
     "mx.linalg.cross(mx.array([1.0, 0.0, 0.0]), mx.array([0.0, 1.0, 0.0]))",
     [](Arguments& a) {
       return give(linalg::cross(a.array_at(0), a.array_at(1), a.integer(2), a.stream(3)));
     }},
    {"eig", "(a, " STREAM, "Eigenvalues and eigenvectors.", "mx.linalg.eig(" MATRIX CPU "[0].shape",
     two<&linalg::eig>},
    {"eigvals", "(a, " STREAM, "Eigenvalues.", "mx.linalg.eigvals(" MATRIX CPU,
     one<&linalg::eigvals>},
    {"eigh", "(a, UPLO='L', " STREAM, "Eigenvalues and eigenvectors of a symmetric matrix.",
     "mx.linalg.eigh(" SYMMETRIC CPU "[0]",
     [](Arguments& a) { return give_tuple(linalg::eigh(a.array_at(0), a.text(1), a.stream(2))); }},
    {"eigvalsh", "(a, UPLO='L', " STREAM, "Eigenvalues of a symmetric matrix.",
     "mx.linalg.eigvalsh(" SYMMETRIC CPU,
     [](Arguments& a) { return give(linalg::eigvalsh(a.array_at(0), a.text(1), a.stream(2))); }},
    {"det", "(a, " STREAM, "The determinant.", "mx.linalg.det(" MATRIX CPU, one<&linalg::det>},
    {"slogdet", "(a, " STREAM, "Sign and logarithm of the determinant's absolute value.",
     "mx.linalg.slogdet(" MATRIX CPU, two<&linalg::slogdet>},
};
#undef STREAM
#undef MATRIX
#undef SYMMETRIC
#undef CPU

}  // namespace

void add_linalg(PyObject* module) { add_rows<rows>(module); }

}  // namespace holdfast::python
