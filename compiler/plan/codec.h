// A plan's parts as bytes and back: plan.proto's messages, serialised. The only file that knows protobuf.
//
//   std::string bytes = encode(program);       // the section "program 0" of a plan file
//   Program same = decode_program(bytes, "plan.soap: section 'program 0'");
//
// Encoding is a function of the value alone. A decoder throws UserError "<what> is damaged" for bytes that
// are no such message, or that hold numbers without a meaning (a type that no version of this format had).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"

namespace ff {

/// Everything of a plan up to Plan::groups, parameters aside, and program_of.
std::string encode_header(const Plan& plan);
std::string encode_parameters(const Plan& plan);
std::string encode_strategy(const Plan& plan);
std::string encode_predictions(const Plan& plan);
std::string encode(const Program& program);

void decode_header(std::string_view bytes, const std::string& what, Plan& plan);
void decode_parameters(std::string_view bytes, const std::string& what, Plan& plan);
void decode_strategy(std::string_view bytes, const std::string& what, Plan& plan);
void decode_predictions(std::string_view bytes, const std::string& what, Plan& plan);
Program decode_program(std::string_view bytes, const std::string& what);

}  // namespace ff
