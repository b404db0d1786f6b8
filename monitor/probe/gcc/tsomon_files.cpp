// Plugin of gcc 12: chooses by source file which plain accesses are instrumented.
//
// Purpose     -fsanitize=thread calls a hook at every access, and most of what recording costs with
//             accesses=sets is calls that find an address not to be watched. Where the declared
//             data is accessed in a few files only, the other calls need not be there. tsomon-c++
//             and tsomon-cc load the plugin for -ftsomon-files=GLOB[:GLOB...].
// Stays       The hook of an access whose own line is in a file that matches, or that of a call
//             that was inlined around it, or that of the function it ended up in. A pattern
//             (fnmatch(3)) is compared with the file's name as the compiler knows it and with the
//             last part of that. What has no line stays. So do atomics, which the hooks perform,
//             the entries and exits of functions, which may be units, and threads and locks.
// Check       With -ftsomon-files-check the other hooks become calls of tsomon_runtime_left_out(),
//             which says when one of them is about to touch watched memory.
// Misses      Copies that the compiler makes of aggregates by memcpy are hooked by the linker, as
//             ever. Code that the compiler shares between files (identical code folding of the
//             linker) has the lines of one of them. With -g0 the calls around an access may be
//             unknown: then its own line and its function decide.
// Source      GCC Internals (12), chapters "Plugins" and "GIMPLE".
// Cost        One pass over the statements behind the instrumentation. Thread-safety: none needed.
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fnmatch.h>

// In the order that they need.
// clang-format off
#include <gcc-plugin.h>
#include <plugin-version.h>
#include <tree.h>
#include <gimple.h>
#include <gimple-iterator.h>
#include <ssa.h>
#include <tree-pass.h>
#include <context.h>
#include <diagnostic-core.h>
// clang-format on

int plugin_is_GPL_compatible;  // gcc loads no other

namespace {

std::vector<std::string> patterns;
bool check = false;

bool matches(const char* file) {
  if (file == nullptr) {
    return false;
  }
  const char* const slash = std::strrchr(file, '/');
  const char* const last = slash == nullptr ? file : slash + 1;
  for (const std::string& pattern : patterns) {
    if (fnmatch(pattern.c_str(), file, 0) == 0 || fnmatch(pattern.c_str(), last, 0) == 0) {
      return true;
    }
  }
  return false;
}

bool stays(location_t place) {
  if (LOCATION_LOCUS(place) == UNKNOWN_LOCATION || matches(LOCATION_FILE(place)) ||
      matches(DECL_SOURCE_FILE(current_function_decl))) {
    return true;
  }
  for (tree block = LOCATION_BLOCK(place); block != NULL_TREE && TREE_CODE(block) == BLOCK;
       block = BLOCK_SUPERCONTEXT(block)) {
    if (inlined_function_outer_scope_p(block) &&
        matches(LOCATION_FILE(BLOCK_SOURCE_LOCATION(block)))) {
      return true;
    }
  }
  return false;
}

// The name behind "__tsan_" of a hook that performs nothing: "read8"; empty: something else.
std::string_view hook_of_access(const gimple* statement) {
  const tree function = is_gimple_call(statement) ? gimple_call_fndecl(statement) : NULL_TREE;
  if (function == NULL_TREE || DECL_NAME(function) == NULL_TREE) {
    return {};
  }
  constexpr std::string_view kPrefix = "__tsan_";
  const std::string_view name = IDENTIFIER_POINTER(DECL_NAME(function));
  const size_t at = name.find(kPrefix);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = name.substr(at + kPrefix.size());
  for (const std::string_view kind : {"read", "write", "unaligned_", "volatile_", "vptr_"}) {
    if (rest.substr(0, kind.size()) == kind) {
      return rest;
    }
  }
  return {};
}

uint64_t size_of(std::string_view hook) {
  const size_t digits = hook.find_first_of("0123456789");
  return digits == std::string_view::npos ? 8 : std::stoull(std::string(hook.substr(digits)));
}

// A call of tsomon_runtime_left_out(address, size, whether it is a store) in its place.
void replace(gimple_stmt_iterator* place, std::string_view hook) {
  static tree function = NULL_TREE;
  if (function == NULL_TREE) {
    function =
        build_fn_decl("tsomon_runtime_left_out",
                      build_function_type_list(void_type_node, const_ptr_type_node, size_type_node,
                                               integer_type_node, NULL_TREE));
  }
  gimple* const old = gsi_stmt(*place);
  const bool range = hook.find("range") != std::string_view::npos;
  const bool store = hook.find("write") != std::string_view::npos || hook == "vptr_update";
  gcall* const call = gimple_build_call(
      function, 3, gimple_call_arg(old, 0),
      range ? gimple_call_arg(old, 1) : build_int_cst(size_type_node, size_of(hook)),
      build_int_cst(integer_type_node, store ? 1 : 0));
  gimple_set_location(call, gimple_location(old));
  gimple_move_vops(call, old);
  gsi_replace(place, call, false);
}

class ChooseFiles : public gimple_opt_pass {
 public:
  explicit ChooseFiles(const pass_data& data) : gimple_opt_pass(data, g) {}
  opt_pass* clone() override { return new ChooseFiles(*this); }
  unsigned execute(function* body) override {
    basic_block block;
    FOR_EACH_BB_FN(block, body) {
      for (gimple_stmt_iterator place = gsi_start_bb(block); !gsi_end_p(place);) {
        gimple* const statement = gsi_stmt(place);
        const std::string_view hook = hook_of_access(statement);
        if (hook.empty() || stays(gimple_location(statement))) {
          gsi_next(&place);
        } else if (check) {
          replace(&place, hook);
          gsi_next(&place);
        } else {
          unlink_stmt_vdef(statement);
          gsi_remove(&place, true);
          release_defs(statement);
        }
      }
    }
    return 0;
  }
};

// Behind the pass that instruments.
void register_behind(const char* name, const char* plugin) {
  static const pass_data data = {GIMPLE_PASS,
                                 "tsomon_files",
                                 OPTGROUP_NONE,
                                 TV_NONE,
                                 PROP_cfg,
                                 0,
                                 0,
                                 0,
                                 TODO_update_ssa_only_virtuals};
  register_pass_info info = {};
  info.pass = new ChooseFiles(data);
  info.reference_pass_name = name;
  info.ref_pass_instance_number = 0;
  info.pos_op = PASS_POS_INSERT_AFTER;
  register_callback(plugin, PLUGIN_PASS_MANAGER_SETUP, nullptr, &info);
}

}  // namespace

int plugin_init(plugin_name_args* plugin, plugin_gcc_version* version) {
  if (!plugin_default_version_check(version, &gcc_version)) {
    error("%s was built for gcc %s and loaded by gcc %s", plugin->base_name, gcc_version.basever,
          version->basever);
    return 1;
  }
  for (int i = 0; i < plugin->argc; ++i) {
    const std::string_view key = plugin->argv[i].key;
    if (key == "check") {
      check = true;
    } else if (key == "only" && plugin->argv[i].value != nullptr) {
      std::string_view left = plugin->argv[i].value;
      while (!left.empty()) {
        const size_t end = left.find(':');
        if (end != 0) {
          patterns.emplace_back(left.substr(0, end));
        }
        left = end == std::string_view::npos ? std::string_view() : left.substr(end + 1);
      }
    }
  }
  register_behind("tsan", plugin->base_name);
  register_behind("tsan0", plugin->base_name);
  return 0;
}
