// The fixed grids, sign patterns and levels of the IQ formats.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace vt {

using Grid8Row = std::array<int8_t, 8>;
using Grid4Row = std::array<int8_t, 4>;

extern const std::array<Grid8Row, 256> kIq2XxsGrid;  // magnitudes 8, 25, 43
extern const std::array<Grid8Row, 512> kIq2XsGrid;   // magnitudes 8, 25, 43
extern const std::array<Grid8Row, 1024> kIq2SGrid;   // magnitudes 8, 25, 43
extern const std::array<Grid4Row, 256> kIq3XxsGrid;  // magnitudes 4, 12, 20, … 44, 62
extern const std::array<Grid4Row, 512> kIq3SGrid;    // magnitudes 1, 3, … 15
extern const std::array<Grid8Row, 2048> kIq1Grid;    // −1, 0, 1
extern const std::array<uint8_t, 128> kSigns7;       // seven sign bits and an eighth that makes their number even
inline constexpr std::array<int8_t, 16> kIq4Levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace vt
