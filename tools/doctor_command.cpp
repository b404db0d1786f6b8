#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/doctor/doctor.h"
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

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("doctor", "Say what this machine offers, and how to get what is missing");
  auto output = std::make_shared<OutputFormat>(OutputFormat::kText);
  add_output_option(*command, *output);
  command->callback([output, &exit_status] { exit_status = run_doctor(*output); });
}

}  // namespace tsomon
