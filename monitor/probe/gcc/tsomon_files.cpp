// Plugin of gcc 12: chooses by source file or function which plain accesses are instrumented.
//
// Purpose     -fsanitize=thread calls a hook at every access, and most of what recording costs with
//             accesses=sets is calls that find an address not to be watched. Where the declared
//             data is accessed in a few files or functions only, the other calls need not be there.
//             tsomon-c++ and tsomon-cc load the plugin for -ftsomon-files=GLOB[:GLOB...],
//             -ftsomon-functions=GLOB[:GLOB...] and -ftsomon-units=GLOB[:GLOB...].
// Stays       The hook of an access whose own line is in a file that matches, or that of a call
//             that was inlined around it, or that of the function it ended up in; or an access in
//             a function that matches, in code that was inlined there, or in one that was inlined.
//             A pattern (fnmatch(3)) is compared with the file's name as the compiler knows it and
//             with the last part of that; with the function's name and that with its scope
//             (a::B::f). What has no line stays. So do atomics, which the hooks perform, and
//             threads and locks.
// Units       Entries and exits of functions stay, for the option unit= of the runtime; with
//             -ftsomon-units only those of functions that match, which alone can be units then.
// Check       With -ftsomon-files-check the other hooks become calls of tsomon_runtime_left_out(),
//             which says when one of them is about to touch watched memory.
// Misses      Copies that the compiler makes of aggregates by memcpy are hooked by the linker, as
//             ever. Code that the compiler shares between files (identical code folding of the
//             linker) has the lines of one of them. With -g0 the calls around an access may be
//             unknown: then its own line and the function it ended up in decide.
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
#include <langhooks.h>
// clang-format on

int plugin_is_GPL_compatible;  // gcc loads no other

namespace {

using Patterns = std::vector<std::string>;
Patterns files;
Patterns functions;
Patterns units;
bool check = false;

bool matches(const Patterns& patterns, const char* one, const char* other) {
  for (const std::string& pattern : patterns) {
    if (fnmatch(pattern.c_str(), one, 0) == 0 || fnmatch(pattern.c_str(), other, 0) == 0) {
      return true;
    }
  }
  return false;
}

bool is_chosen_file(const char* file) {
  if (file == nullptr) {
    return false;
  }
  const char* const slash = std::strrchr(file, '/');
  return matches(files, file, slash == nullptr ? file : slash + 1);
}

bool is_function(const Patterns& patterns, tree function) {
  if (patterns.empty() || function == NULL_TREE || TREE_CODE(function) != FUNCTION_DECL) {
    return false;
  }
  const tree written = DECL_ORIGIN(function);  // of which the compiler may have made variants
  const std::string name = lang_hooks.decl_printable_name(written, 0);
  return matches(patterns, name.c_str(), lang_hooks.decl_printable_name(written, 1));
}

bool stays(location_t place) {
  if (LOCATION_LOCUS(place) == UNKNOWN_LOCATION || is_chosen_file(LOCATION_FILE(place)) ||
      is_chosen_file(DECL_SOURCE_FILE(current_function_decl)) ||
      is_function(functions, current_function_decl)) {
    return true;
  }
  for (tree block = LOCATION_BLOCK(place); block != NULL_TREE && TREE_CODE(block) == BLOCK;
       block = BLOCK_SUPERCONTEXT(block)) {
    if (inlined_function_outer_scope_p(block) &&
        (is_chosen_file(LOCATION_FILE(BLOCK_SOURCE_LOCATION(block))) ||
         is_function(functions, block_ultimate_origin(block)))) {
      return true;
    }
  }
  return false;
}

// The name behind "__tsan_" of a hook: "read8"; empty: something else.
std::string_view hook_of(const gimple* statement) {
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
  return name.substr(at + kPrefix.size());
}

// Of one that performs nothing itself.
bool is_access(std::string_view hook) {
  for (const std::string_view kind : {"read", "write", "unaligned_", "volatile_", "vptr_"}) {
    if (hook.substr(0, kind.size()) == kind) {
      return true;
    }
  }
  return false;
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
    const bool is_unit = units.empty() || is_function(units, current_function_decl);
    const bool all_accesses = files.empty() && functions.empty();
    basic_block block;
    FOR_EACH_BB_FN(block, body) {
      for (gimple_stmt_iterator place = gsi_start_bb(block); !gsi_end_p(place);) {
        gimple* const statement = gsi_stmt(place);
        const std::string_view hook = hook_of(statement);
        const bool keep =
            hook == "func_entry" || hook == "func_exit"
                ? is_unit
                : all_accesses || !is_access(hook) || stays(gimple_location(statement));
        if (keep) {
          gsi_next(&place);
        } else if (check && is_access(hook)) {
          replace(&place, hook);
          gsi_next(&place);
        } else {
          remove(&place);
        }
      }
    }
    return 0;
  }

 private:
  static void remove(gimple_stmt_iterator* place) {
    gimple* const statement = gsi_stmt(*place);
    unlink_stmt_vdef(statement);
    gsi_remove(place, true);
    release_defs(statement);
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

// Between two patterns is a colon; those of a::b are part of one.
void add_patterns(std::string_view text, Patterns* patterns) {
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text.substr(at, 2) == "::") {
      ++at;
    } else if (at == text.size() || text[at] == ':') {
      if (at > begin) {
        patterns->emplace_back(text.substr(begin, at - begin));
      }
      begin = at + 1;
    }
  }
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
    } else if (plugin->argv[i].value != nullptr) {  // of "files", "functions" and "units"
      add_patterns(plugin->argv[i].value, key == "functions" ? &functions
                                          : key == "units"   ? &units
                                                             : &files);
    }
  }
  register_behind("tsan", plugin->base_name);
  register_behind("tsan0", plugin->base_name);
  return 0;
}
