// Plugin of gcc 12: two versions of each function, for --dormant.
//
// Purpose     Of each function with a body there are the plain one, which -fsanitize=thread leaves alone, and
//             its twin NAME.tsomon, which it instruments. What stands at the entry of the plain one, and
//             brings callers to the twin while the program is watched, is the assembler's work
//             (monitor/probe/assembler/twins.h).
// Where       Behind the passes that make SSA, before the first inlining: each version gets its own, so the
//             plain one is what the compiler makes of the program without us.
// Twins       call twins, so that those are inlined into them; of calls that stay the assembler makes calls of the plain
//             functions. Statics, addresses and tables are shared: only plain functions have their address
//             taken. A twin of an inline function is one of its kind in the program, as that is. A twin
//             whose plain function is gone (inlined everywhere) goes, too, unless another one calls it.
// The stack   gcc knows how much a function that it has compiled aligns its stack, and lets callers rely on it. A
//             twin is called in the place of such a function, so it aligns its stack itself. (For the
//             same reason the wrapper passes -fno-ipa-ra.)
// No twin     Functions that the program excludes from instrumentation, that are naked, that have several
//             versions already (target_clones, ifunc), or that cannot be copied (a static variable with the
//             address of a label). They are named in the section .tsomon.no_twin of the object:
//             strings, each a name, a tab, and the reason.
// Source      GCC Internals (12), chapters "Plugins" and "Link Time Optimization" (passes of symbols). The
//             idea: Arnold and Ryder, A Framework for Reducing the Cost of Instrumented Code, PLDI 2001.
// Cost        As compiling the unit twice, at most. Thread-safety: none needed.
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// In the order that they need.
// clang-format off
#include <gcc-plugin.h>
#include <plugin-version.h>
#include <tree.h>
#include <gimple.h>
#include <gimple-iterator.h>
#include <ssa.h>
#include <tree-pass.h>
#include <tree-cfg.h>
#include <tree-inline.h>
#include <context.h>
#include <diagnostic-core.h>
#include <stringpool.h>
#include <attribs.h>
#include <asan.h>
#include <cgraph.h>
#include <varasm.h>
// clang-format on

int plugin_is_GPL_compatible;  // gcc loads no other

namespace {

constexpr std::string_view kSuffix = ".tsomon";

std::string name_of(const cgraph_node* node) {
  const char* const name = IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(node->decl));
  return name[0] == '*' ? name + 1 : name;
}

bool has_attribute(tree function, const char* name) {
  return lookup_attribute(name, DECL_ATTRIBUTES(function)) != NULL_TREE;
}

void add_attribute(tree function, const char* name, tree value) {
  DECL_ATTRIBUTES(function) = tree_cons(get_identifier(name), value, DECL_ATTRIBUTES(function));
}

// Why it has no twin; nullptr: it has one.
const char* obstacle(cgraph_node* node) {
  const tree function = node->decl;
  if (!sanitize_flags_p(SANITIZE_THREAD, function)) {
    return "excluded from instrumentation";
  }
  if (has_attribute(function, "naked")) {
    return "naked";
  }
  if (has_attribute(function, "ifunc") || has_attribute(function, "target_clones") ||
      node->dispatcher_function || node->ifunc_resolver || DECL_FUNCTION_VERSIONED(function)) {
    return "has versions of its own";
  }
  if (copy_forbidden(DECL_STRUCT_FUNCTION(function)) != nullptr) {
    return "a label's address is kept in static data";
  }
  return nullptr;
}

// No load that the program does not make, as the wrapper asks for where there is one version.
tree optimization_of_twin(tree function) {
  cl_optimization outside;
  cl_optimization_save(&outside, &global_options, &global_options_set);
  if (const tree own = DECL_FUNCTION_SPECIFIC_OPTIMIZATION(function); own != NULL_TREE) {
    cl_optimization_restore(&global_options, &global_options_set, TREE_OPTIMIZATION(own));
  }
  global_options.x_flag_tree_loop_im = 0;
  global_options.x_flag_hoist_adjacent_loads = 0;
  const tree result = build_optimization_node(&global_options, &global_options_set);
  cl_optimization_restore(&global_options, &global_options_set, &outside);
  return result;
}

class Twins : public simple_ipa_opt_pass {
 public:
  explicit Twins(const pass_data& data) : simple_ipa_opt_pass(data, g) {}
  opt_pass* clone() override { return new Twins(*this); }
  bool gate(function*) override { return (flag_sanitize & SANITIZE_THREAD) != 0; }

  unsigned execute(function*) override {
    static bool done =
        false;  // gcc makes an instance of the pass for each list that it looks through
    if (done) {
      return 0;
    }
    done = true;
    std::vector<cgraph_node*> nodes;
    cgraph_node* node = nullptr;
    FOR_EACH_FUNCTION_WITH_GIMPLE_BODY(node) {
      if (!node->thunk && !node->alias) {
        nodes.push_back(node);
      }
    }
    std::vector<cgraph_node*> twins;
    for (cgraph_node* const each : nodes) {
      // A body that is there for inlining alone is somewhere else, with its twin if it has one.
      if (DECL_EXTERNAL(each->decl)) {
        continue;
      }
      if (const char* const why = obstacle(each); why != nullptr) {
        name_without(each, why);
      } else if (cgraph_node* const twin = make_twin(each); twin != nullptr) {
        twins.push_back(twin);
        twin_of_[each] = twin->decl;
      } else {
        name_without(each, "the compiler cannot copy it");
      }
    }
    for (cgraph_node* const each : nodes) {
      leave_plain(each);
    }
    for (cgraph_node* const each : twins) {
      call_twins(each);
    }
    return 0;
  }

 private:
  static cgraph_node* make_twin(cgraph_node* node) {
    // noclone, which noipa implies, is about copies that the optimiser makes: the twin has it itself.
    const tree attributes = DECL_ATTRIBUTES(node->decl);
    DECL_ATTRIBUTES(node->decl) = remove_attribute("noclone", copy_list(attributes));
    cgraph_node* const twin = node->create_version_clone_with_body(vNULL, nullptr, nullptr, nullptr,
                                                                   nullptr, "tsomon", NULL_TREE);
    DECL_ATTRIBUTES(node->decl) = attributes;
    if (twin == nullptr) {
      return nullptr;
    }
    const tree function = twin->decl;
    DECL_ATTRIBUTES(function) = copy_list(attributes);
    const tree name = get_identifier((name_of(node) + std::string(kSuffix)).c_str());
    symtab->change_decl_assembler_name(function, name);
    DECL_FUNCTION_SPECIFIC_OPTIMIZATION(function) = optimization_of_twin(node->decl);
    const tree aligning = tree_cons(get_identifier("force_align_arg_pointer"), NULL_TREE,
                                    TYPE_ATTRIBUTES(TREE_TYPE(function)));
    TREE_TYPE(function) = build_type_attribute_variant(TREE_TYPE(function), aligning);
    // Two twins that are the same code are the twins of two functions.
    add_attribute(function, "no_icf", NULL_TREE);
    if (DECL_COMDAT(node->decl)) {
      TREE_PUBLIC(function) = 1;
      DECL_COMDAT(function) = 1;
      DECL_EXTERNAL(function) = 0;
      DECL_VISIBILITY(function) = VISIBILITY_HIDDEN;
      DECL_VISIBILITY_SPECIFIED(function) = 1;
      make_decl_one_only(function, name);
      twin->externally_visible = true;
    }
    twin->local = false;        // nothing is known of who comes to it
    twin->force_output = true;  // until it is known whether anything can come to it
    return twin;
  }

  static void name_without(const cgraph_node* node, const char* why) {
    const std::string text = ".pushsection .tsomon.no_twin,\"\",@progbits\n\t.string \"" +
                             name_of(node) + "\\t" + why + "\"\n\t.popsection";
    symtab->finalize_toplevel_asm(build_string(static_cast<int>(text.size()), text.c_str()));
  }

  // Neither hooks nor what the front end has prepared for them.
  static void leave_plain(cgraph_node* node) {
    add_attribute(node->decl, "no_sanitize", build_int_cst(unsigned_type_node, SANITIZE_THREAD));
    push_cfun(DECL_STRUCT_FUNCTION(node->decl));
    basic_block block = nullptr;
    FOR_EACH_BB_FN(block, cfun) {
      for (gimple_stmt_iterator place = gsi_start_bb(block); !gsi_end_p(place);) {
        gimple* const statement = gsi_stmt(place);
        if (gimple_call_internal_p(statement, IFN_TSAN_FUNC_EXIT)) {
          unlink_stmt_vdef(statement);
          gsi_remove(&place, true);
        } else {
          gsi_next(&place);
        }
      }
    }
    pop_cfun();
  }

  void call_twins(cgraph_node* twin) {
    push_cfun(DECL_STRUCT_FUNCTION(twin->decl));
    bool changed = false;
    basic_block block = nullptr;
    FOR_EACH_BB_FN(block, cfun) {
      for (gimple_stmt_iterator place = gsi_start_bb(block); !gsi_end_p(place); gsi_next(&place)) {
        auto* const call = dyn_cast<gcall*>(gsi_stmt(place));
        const tree callee = call == nullptr ? NULL_TREE : gimple_call_fndecl(call);
        cgraph_node* const node = callee == NULL_TREE ? nullptr : cgraph_node::get(callee);
        const auto found = twin_of_.find(node);
        // Another module may have a function of that name that comes before this one.
        if (found == twin_of_.end() || node->get_availability() < AVAIL_AVAILABLE) {
          continue;
        }
        gimple_call_set_fndecl(call, found->second);
        update_stmt(call);
        changed = true;
      }
    }
    if (changed) {
      cgraph_edge::rebuild_edges();
    }
    pop_cfun();
  }

  std::unordered_map<cgraph_node*, tree> twin_of_;
};

// Behind the inlining: nobody can come to a twin whose plain function is not compiled.
class Leave : public simple_ipa_opt_pass {
 public:
  explicit Leave(const pass_data& data) : simple_ipa_opt_pass(data, g) {}
  opt_pass* clone() override { return new Leave(*this); }
  bool gate(function*) override { return (flag_sanitize & SANITIZE_THREAD) != 0; }

  unsigned execute(function*) override {
    std::unordered_map<std::string, cgraph_node*> functions;
    cgraph_node* node = nullptr;
    FOR_EACH_FUNCTION(node) {
      if (node->inlined_to == nullptr) {
        functions[name_of(node)] = node;
      }
    }
    for (const auto& [name, twin] : functions) {
      if (name.size() <= kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) {
        continue;
      }
      const auto plain = functions.find(name.substr(0, name.size() - kSuffix.size()));
      if (plain == functions.end() || !is_compiled(plain->second)) {
        twin->force_output = false;
      }
    }
    return TODO_remove_functions;
  }

 private:
  static bool is_compiled(cgraph_node* node) {
    if (node->force_output || node->address_taken || node->callers != nullptr ||
        node->ref_list.first_referring() != nullptr || node->same_comdat_group != nullptr) {
      return true;
    }
    return !node->can_be_discarded_p() && !node->only_called_directly_p();
  }
};

template <typename Pass>
void register_behind(const char* reference, const char* name, unsigned todo, const char* plugin) {
  const pass_data data = {SIMPLE_IPA_PASS, name, OPTGROUP_NONE, TV_NONE, 0, 0, 0, 0, todo};
  register_pass_info info = {};
  info.pass = new Pass(*new pass_data(data));
  info.reference_pass_name = reference;
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
  register_behind<Twins>("build_ssa_passes", "tsomon_twins", 0, plugin->base_name);
  register_behind<Leave>("simdclone", "tsomon_leave", TODO_remove_functions, plugin->base_name);
  return 0;
}
