#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/doctor/doctor.h"
#include "monitor/process/twins_in_file.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

void print_text(const std::vector<MachineFinding>& findings) {
  std::string out;
  for (const MachineFinding& finding : findings) {
    out += fmt::format("{:<3} {:<20} {}\n", finding.available ? "yes" : "no", finding.name,
                       printable(finding.detail));
    if (!finding.available) {
      out += fmt::format("    {:<20} {}needed by: {}\n", "", finding.required ? "REQUIRED, " : "",
                         finding.needed_by);
      out += fmt::format("    {:<20} remedy: {}\n", "", printable(finding.remedy));
    }
  }
  put_lines(stdout, out);
}

void print_json(const std::vector<MachineFinding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MachineFinding& finding : findings) {
    nlohmann::ordered_json entry = {
        {"name", finding.name},           {"available", finding.available},
        {"required", finding.required},   {"detail", finding.detail},
        {"needed_by", finding.needed_by}, {"remedy", finding.remedy}};
    if (finding.nanoseconds) {
      entry["nanoseconds_per_hit"] = *finding.nanoseconds;
    }
    list.push_back(std::move(entry));
  }
  put_json(stdout, {{"findings", std::move(list)}}, "tsomon doctor");
}

int run_doctor(OutputFormat output) {
  const std::vector<MachineFinding> findings = examine_machine();
  output == OutputFormat::kJson ? print_json(findings) : print_text(findings);
  for (const MachineFinding& finding : findings) {
    if (finding.required && !finding.available) {
      return kExitEnvironment;
    }
  }
  return kExitClean;
}

// What programs and libraries have two versions of.
int run_doctor_on(const std::vector<std::string>& files, OutputFormat output) {
  int status = kExitClean;
  for (const std::string& file : files) {
    const auto twins = twins_in_file(file);
    if (!twins) {
      put_messages("tsomon doctor", file, {twins.error().to_string()});
      status = kExitBadInput;
      continue;
    }
    if (output == OutputFormat::kJson) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const WithoutTwin& each : twins->without) {
        list.push_back({{"function", each.function}, {"why", each.why}});
      }
      put_json(stdout,
               {{"file", file},
                {"dormant", twins->twins != 0},
                {"twins", twins->twins},
                {"without_twin", std::move(list)}},
               "tsomon doctor");
      continue;
    }
    std::string text = printable(file) + ": ";
    text += twins->twins == 0 ? std::string("not built with tsomon-c++ --dormant\n")
                              : fmt::format("{} functions with a twin, {} without\n", twins->twins,
                                            twins->without.size());
    for (const WithoutTwin& each : twins->without) {
      text += fmt::format("  {}: {}\n", printable(each.function), printable(each.why));
    }
    put_lines(stdout, text);
  }
  return status;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("doctor", "Say what this machine offers, and how to get what is missing");
  auto output = std::make_shared<OutputFormat>(OutputFormat::kText);
  auto files = std::make_shared<std::vector<std::string>>();
  add_output_option(*command, *output);
  command->add_option("FILE", *files,
                      "Programs and libraries built with tsomon-c++ --dormant: how many of their "
                      "functions can be watched, and which cannot");
  command->callback([output, files, &exit_status] {
    exit_status = files->empty() ? run_doctor(*output) : run_doctor_on(*files, *output);
  });
}

}  // namespace tsomon
