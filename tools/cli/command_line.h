// The flags of a command: long, grouped, with their defaults shown; one style for all commands.
//
//   int64_t batch = 64;
//   std::string model;
//   CommandLine line("ffcompile", "Compiles a model to a plan.");
//   line.positional("MODEL.onnx", &model, "The model");
//   line.group("Model");
//   line.option("--batch", &batch, "N", "Samples a step");
//   if (!line.parse(argc, argv)) return 0;      // --help or --version was answered
//
// A variable's value when it is declared is its default. An unknown flag is a UserError with the nearest one
// as its hint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/spelling.h"  // nearest: what was meant

namespace ff {

class CommandLine {
 public:
  CommandLine(std::string program, const std::string& description);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  /// Options declared after this are listed under `title` in --help.
  void group(const std::string& title);
  /// An argument without a flag, in order of declaration; empty if it was not given and is not required.
  void positional(const std::string& name, std::string* value, const std::string& help,
                  bool required = false);
  void flag(const std::string& name, bool* value, const std::string& help);
  /// `name` is "--batch" or "-o,--output"; `placeholder` stands for the value in --help. A list is given by
  /// repeating the flag; an optional stays empty if the flag is not given.
  void option(const std::string& name, std::string* value, const std::string& placeholder,
              const std::string& help);
  void option(const std::string& name, int* value, const std::string& placeholder, const std::string& help);
  void option(const std::string& name, int64_t* value, const std::string& placeholder,
              const std::string& help);
  void option(const std::string& name, uint64_t* value, const std::string& placeholder,
              const std::string& help);
  void option(const std::string& name, double* value, const std::string& placeholder,
              const std::string& help);
  void option(const std::string& name, std::vector<std::string>* value, const std::string& placeholder,
              const std::string& help);
  void option(const std::string& name, std::optional<std::string>* value, const std::string& placeholder,
              const std::string& help);
  void option(const std::string& name, std::optional<int64_t>* value, const std::string& placeholder,
              const std::string& help);
  void option(const std::string& name, std::optional<double>* value, const std::string& placeholder,
              const std::string& help);
  /// One of `choices`; anything else is a UserError that names the nearest.
  void choice(const std::string& name, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);

  /// False if --help or --version was answered on stdout and there is nothing to run. UserError otherwise.
  bool parse(int argc, char** argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ff
