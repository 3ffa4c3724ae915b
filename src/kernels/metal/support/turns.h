// Cosine and sine in double precision, which Metal does not have: angles of far positions, and
// twiddle factors that are right to the last bit of a float.
#undef double

struct Turn {
  double cosine, sine;
};

// (((terms[0] z + terms[1]) z + …
template <int count>
inline double polynomial(double z, constant const double (&terms)[count]) {
  double sum = terms[0];
  for (int i = 1; i < count; ++i) sum = sum * z + terms[i];
  return sum;
}

// Taylor series: for |x| <= pi / 4, what they leave out is below 2^-53. A literal without a suffix
// would be a float, as in Metal.
constant constexpr double half_pi = 1.5707963267948966L;
constant constexpr double sine_terms[] = {-7.647163731819816e-13L, 1.6059043836821613e-10L,
                                          -2.505210838544172e-08L, 2.7557319223985893e-06L,
                                          -0.0001984126984126984L, 0.008333333333333333L,
                                          -0.16666666666666666L};
constant constexpr double cosine_terms[] = {4.779477332387385e-14L,
                                            -1.1470745597729725e-11L,
                                            2.08767569878681e-09L,
                                            -2.755731922398589e-07L,
                                            2.48015873015873e-05L,
                                            -0.001388888888888889L,
                                            0.041666666666666664L,
                                            -0.5L,
                                            1.0L};

// By `quarters` quarter turns, fewer than 2^51 of them.
inline Turn turn_by(double quarters) {
  // Adding it rounds to an integer, whose last bits are those of the sum.
  constexpr double magic = 0x1.8p52L;
  const double shifted = quarters + magic;
  const double x = (quarters - (shifted - magic)) * half_pi, z = x * x;
  const double sine = polynomial(z, sine_terms) * z * x + x;
  const double cosine = polynomial(z, cosine_terms);
  const uint quadrant = uint(as_type<ulong>(shifted)) & 3;
  const bool is_odd = (quadrant & 1) != 0;
  const double c = is_odd ? sine : cosine, s = is_odd ? cosine : sine;
  return {((quadrant + 1) & 2) != 0 ? -c : c, (quadrant & 2) != 0 ? -s : s};
}
