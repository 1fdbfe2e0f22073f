#include "tools/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "compiler/base/check.h"

namespace ff {
namespace {

constexpr char kVersion[] = "0.1.0";

}  // namespace

struct CommandLine::Impl {
  Impl(std::string name, const std::string& description) : app(description, std::move(name)) {
    app.allow_extras();
    app.set_help_flag("--help", "Prints this and stops");
    app.set_version_flag("--version", app.get_name() + " " + kVersion, "Prints the version and stops");
    flags = {"--help", "--version"};
  }

  void remember(const std::string& names) {
    for (size_t at = 0; at != std::string::npos;) {
      const size_t comma = names.find(',', at);
      const std::string one = names.substr(at, comma == std::string::npos ? comma : comma - at);
      if (one.rfind("--", 0) == 0) flags.push_back(one);
      at = comma == std::string::npos ? comma : comma + 1;
    }
  }

  CLI::Option* dress(CLI::Option* option, const std::string& placeholder, bool show_default) {
    if (!placeholder.empty()) option->type_name(placeholder);
    if (!group.empty()) option->group(group);
    if (show_default) option->capture_default_str();
    return option;
  }

  template <typename T>
  CLI::Option* add(const std::string& name, T* value, const std::string& placeholder, const std::string& help,
                   bool show_default) {
    remember(name);
    return dress(app.add_option(name, *value, help), placeholder, show_default);
  }

  // An argument that CLI11 did not know: a mistyped flag or one word too many.
  void refuse_extras() const {
    const std::vector<std::string> extras = app.remaining();
    if (extras.empty()) return;
    const auto is_flag = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
    const auto flag = std::find_if(extras.begin(), extras.end(), is_flag);
    if (flag == extras.end()) {
      throw UserError("unexpected argument '" + extras.front() + "'",
                      app.get_name() + " --help lists what is taken");
    }
    const std::string name = flag->substr(0, flag->find('='));
    throw UserError("unknown option '" + name + "'", "did you mean '" + nearest(name, flags) + "'?");
  }

  CLI::App app;
  std::string group;
  std::vector<std::string> flags;
};

CommandLine::CommandLine(std::string program, const std::string& description)
    : impl_(std::make_unique<Impl>(std::move(program), description)) {}
CommandLine::~CommandLine() = default;

void CommandLine::group(const std::string& title) { impl_->group = title; }

void CommandLine::positional(const std::string& name, std::string* value, const std::string& help,
                             bool required) {
  impl_->app.add_option(name, *value, help)->type_name("")->required(required);
}

void CommandLine::flag(const std::string& name, bool* value, const std::string& help) {
  impl_->remember(name);
  impl_->dress(impl_->app.add_flag(name, *value, help), {}, false);
}

void CommandLine::option(const std::string& name, std::string* value, const std::string& placeholder,
                         const std::string& help) {
  impl_->add(name, value, placeholder, help, !value->empty());
}
void CommandLine::option(const std::string& name, int* value, const std::string& placeholder,
                         const std::string& help) {
  impl_->add(name, value, placeholder, help, true);
}
void CommandLine::option(const std::string& name, int64_t* value, const std::string& placeholder,
                         const std::string& help) {
  impl_->add(name, value, placeholder, help, true);
}
void CommandLine::option(const std::string& name, uint64_t* value, const std::string& placeholder,
                         const std::string& help) {
  impl_->add(name, value, placeholder, help, true);
}
void CommandLine::option(const std::string& name, double* value, const std::string& placeholder,
                         const std::string& help) {
  impl_->add(name, value, placeholder, help, true);
}
void CommandLine::option(const std::string& name, std::vector<std::string>* value,
                         const std::string& placeholder, const std::string& help) {
  // One value a flag: "--data a=b model.onnx" must not take the model.
  impl_->add(name, value, placeholder, help, false)->take_all()->allow_extra_args(false);
}
void CommandLine::option(const std::string& name, std::optional<std::string>* value,
                         const std::string& placeholder, const std::string& help) {
  impl_->add(name, value, placeholder, help, false);
}
void CommandLine::option(const std::string& name, std::optional<int64_t>* value,
                         const std::string& placeholder, const std::string& help) {
  impl_->add(name, value, placeholder, help, false);
}
void CommandLine::option(const std::string& name, std::optional<double>* value,
                         const std::string& placeholder, const std::string& help) {
  impl_->add(name, value, placeholder, help, false);
}

void CommandLine::choice(const std::string& name, std::string* value, const std::vector<std::string>& choices,
                         const std::string& help) {
  std::string all;
  for (const std::string& one : choices) all += (all.empty() ? "" : "|") + one;
  CLI::Option* const option = impl_->add(name, value, all, help, !value->empty());
  option->each([name, choices](const std::string& given) {
    if (std::find(choices.begin(), choices.end(), given) != choices.end()) return;
    throw UserError(name + " " + given + ": no such choice",
                    "did you mean '" + nearest(given, choices) + "'?");
  });
}

bool CommandLine::parse(int argc, char** argv) {
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::Success& answered) {
    impl_->app.exit(answered, std::cout, std::cerr);
    return false;
  } catch (const CLI::ParseError& error) {
    impl_->refuse_extras();
    throw UserError(error.what(), impl_->app.get_name() + " --help lists what is taken");
  }
  impl_->refuse_extras();
  return true;
}

}  // namespace ff
