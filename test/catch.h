// Catch2 2.13 (Debian 12) and 3 (Debian 13) under one include.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
inline auto contains_text(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
#else
#include <catch2/catch.hpp>
inline auto contains_text(const std::string& text) { return Catch::Contains(text); }
#endif
