#include "tools/examples.h"

#include <array>
#include <utility>

namespace tsomon {

std::string_view examples_of(std::string_view command) {
  using Entry = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kExamples{
      Entry{"attach",
            "  tsomon attach -p 4711 --unit 'transfer*'        # until Ctrl-C\n"
            "  tsomon attach -p 4711 --unit 'transfer*' -o run.std    # keep what was seen"},
      Entry{"check",
            "  tsomon check run.tsomon\n"
            "  tsomon check --property robustness,serializability run.tsomon\n"
            "  tsomon check --output json run.tsomon > run.json"},
      Entry{"completion",
            "  tsomon completion bash > ~/.local/share/bash-completion/completions/tsomon"},
      Entry{"critical-races", "  tsomon critical-races -- ./small_client"},
      Entry{"doctor",
            "  tsomon doctor           # what this machine lets tsomon do\n"
            "  tsomon doctor ./program # which functions of a dormant program can be watched"},
      Entry{"explain",
            "  tsomon explain run.tsomon\n"
            "  tsomon explain failing.tsomon --passing good.tsomon"},
      Entry{"explore",
            "  tsomon explore -- ./small_client\n"
            "  tsomon explore --model sc -- ./small_client    # without store buffers"},
      Entry{"findings",
            "  tsomon findings --store /var/lib/tsomon\n"
            "  tsomon findings --store /var/lib/tsomon show 1f3a\n"
            "  tsomon findings --fleet postgresql://tsomon@db/tsomon"},
      Entry{"fleet",
            "  tsomon fleet status --fleet postgresql://tsomon@db/tsomon\n"
            "  tsomon fleet show ID > verdict.json            # with TSOMON_FLEET"},
      Entry{"generate", "  tsomon generate --events 1000000 | tsomon check -"},
      Entry{"litmus", "  tsomon litmus SB.litmus"},
      Entry{"man", "  tsomon man check | man -l -"},
      Entry{"monitor",
            "  tsomon monitor --config tsomon.toml --check-config\n"
            "  tsomon monitor --config tsomon.toml --output json >> findings.json"},
      Entry{"pack",
            "  tsomon pack run.tsomon                        # writes run.tsomon.pack\n"
            "  tsomon pack -o - run.tsomon | ssh desk tsomon check -"},
      Entry{"predict",
            "  tsomon predict run.tsomon\n"
            "  tsomon predict --kinds races,deadlocks run.tsomon"},
      Entry{"record",
            "  tsomon record -- ./program argument              # writes capture.tsomon\n"
            "  tsomon record -o run.tsomon -- ./program"},
      Entry{"report",
            "  tsomon report run.json --html run.html --source src\n"
            "  tsomon report run.json --junit run.xml --sarif run.sarif\n"
            "  tsomon report run.json --perfetto run.pftrace"},
      Entry{"run",
            "  tsomon run -- ./program argument\n"
            "  tsomon run --save run.tsomon --report found.txt -- ./program"},
      Entry{"script", "  tsomon script run.tsomon | less"},
      Entry{"show", "  tsomon show 1f3a --store /var/lib/tsomon"},
      Entry{"status",
            "  tsomon status --store /var/lib/tsomon\n"
            "  tsomon status --store /var/lib/tsomon --output json | jq '.targets[].state'"},
      Entry{"submit",
            "  tsomon submit --fleet postgresql://tsomon@db/tsomon captures/*.tsomon\n"
            "  tsomon submit --ask check,predict --wait run.tsomon    # with TSOMON_FLEET"},
      Entry{"top",
            "  tsomon top --store /var/lib/tsomon\n"
            "  tsomon top --store /var/lib/tsomon --interval 10s --count 6 > minute.txt"},
      Entry{"worker", "  tsomon worker --fleet postgresql://tsomon@db/tsomon --jobs 4"},
  };
  for (const auto& [name, examples] : kExamples) {
    if (name == command) {
      return examples;
    }
  }
  return {};
}

}  // namespace tsomon
