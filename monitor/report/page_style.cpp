#include "monitor/report/page_parts.h"

namespace tsomon::report {

const char* const kPageStyle = R"page(
:root { color-scheme: light dark; --text: #1b1f24; --page: #fff; --soft: #57606a; --line: #d0d7de; --box: #f6f8fa; --hit: #fff8e5;
 --bad: #b3261e; --told: #7a3fd0; --may: #8a5a00; --edge: #b3261e; --link: #0a58ca;
 --t0: #1f6feb; --t1: #bf5b04; --t2: #1a7f37; --t3: #9a3fb8; --t4: #0b7a83; --t5: #a8325a }
@media (prefers-color-scheme: dark) { :root { --text: #d8dee4; --page: #14181d; --soft: #9aa5b1; --line: #39424c; --box: #1f252c; --hit: #33290f;
 --bad: #ff8a80; --told: #c8a6ff; --may: #e3b341; --edge: #ff8a80; --link: #79b8ff;
 --t0: #79b8ff; --t1: #ffab70; --t2: #7ee787; --t3: #e2a3ff; --t4: #6fdde6; --t5: #ff9bc2 } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 90em; padding: 1em 1.5em 4em; color: var(--text); background: var(--page) }
h1 { font-size: 1.5em; margin: .3em 0 } h2, h3 { font-size: 1.08em; margin: 0; display: inline; overflow-wrap: anywhere } h4 { margin: 1.2em 0 .3em; font-size: 1em }
code, pre { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere }
a { color: var(--link) } .soft, .note, .place { color: var(--soft) } .note { margin: .3em 0 }
table { border-collapse: collapse; margin: .5em 0 } th, td { border: 1px solid var(--line); padding: .25em .6em; text-align: left; vertical-align: top; overflow-wrap: break-word }
th { background: var(--box); font-weight: 600 } caption { text-align: left; color: var(--soft); font-size: .9em; overflow-wrap: anywhere }
.counts { display: flex; flex-wrap: wrap; gap: .6em; padding: 0; margin: .6em 0; list-style: none }
.counts li { border: 1px solid var(--line); border-radius: 6px; padding: .2em .8em; background: var(--box) } .counts b { font-size: 1.15em }
.tools { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: .6em 1em; align-items: end; background: var(--page); border-bottom: 1px solid var(--line); padding: .6em 0; margin: 1em 0 }
.tools[hidden] { display: none } .tools label { display: flex; flex-direction: column; font-size: .85em; color: var(--soft) } .tools output { padding: .3em 0 }
.tools input { min-width: 18em } .tools input, .tools select, .tools button { font: inherit; font-size: 15px; color: var(--text); background: var(--page); border: 1px solid var(--line); border-radius: 5px; padding: .25em .6em }
details { border: 1px solid var(--line); border-radius: 6px; margin: .6em 0 } details > summary { cursor: pointer; padding: .5em .9em; border-radius: 6px }
details > .in { padding: 0 1em .8em } .group > summary { background: var(--box) } .group > .in { padding: .2em .8em }
summary:focus-visible, input:focus-visible, select:focus-visible, button:focus-visible, a:focus-visible, .scroll:focus-visible { outline: 3px solid var(--t0); outline-offset: 1px }
.finding { scroll-margin-top: 6em } .off { display: none }
.verdict { border: 1px solid; border-radius: 4px; padding: 0 .4em; font-size: .85em; font-weight: 600 }
.definite, .explored { color: var(--bad) } .predicted { color: var(--told) } .possible { color: var(--may) }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1em; margin: .8em 0 } .facts dt { color: var(--soft) } .facts dd { margin: 0; overflow-wrap: anywhere }
.pictures { display: flex; flex-wrap: wrap; gap: 1em 2.5em; align-items: flex-start } figure { margin: .4em 0; max-width: 100% } figcaption { font-weight: 600; margin-bottom: .3em }
.decisions ul { border-left: 1px solid var(--line); margin: .1em 0 .4em; padding-left: 1.4em } .decisions .bad { color: var(--bad) } .decisions .good { color: var(--t2) }
.scroll { overflow-x: auto; max-width: 100% } ol.edges { margin: .3em 0; padding-left: 2em }
svg { font: 12px ui-monospace, monospace; display: block } svg text { fill: var(--text) } svg .lane { font-weight: 700 } svg .at, svg .why { fill: var(--soft); font-size: 11px } svg .gap { fill: var(--soft); font-style: italic }
svg .name { fill: var(--soft); font-size: 11px; font-style: italic; text-anchor: end } svg .what, svg .at, svg .name { paint-order: stroke; stroke: var(--page); stroke-width: 3px; stroke-linejoin: round } svg .on { font-weight: 700 } svg .rail { stroke-width: 2; opacity: .35; fill: none } svg .unit { fill-opacity: .1; stroke-opacity: .6 } svg .step, svg .turn { fill: currentColor; stroke: currentColor }
svg .step:not(.on), svg .turn:not(.on) { fill-opacity: .35 } svg .commit { fill: var(--page); stroke: currentColor; stroke-width: 2 } svg .commit.on { fill: currentColor }
svg .late { fill: none; stroke: currentColor; stroke-width: 2; stroke-dasharray: 4 3 } svg .rail, svg .unit { stroke: currentColor } svg .unit { fill: currentColor }
svg .edge path { fill: none; stroke: var(--edge); stroke-width: 1.6; stroke-linejoin: round } svg marker path { fill: var(--edge); stroke: none } svg .edge circle { fill: var(--page); stroke: var(--edge) } svg .edge text { font-size: 11px; text-anchor: middle } svg .edge text.why { text-anchor: start }
svg .node rect { fill: var(--box); stroke: var(--line) }
.t0 { color: var(--t0) } .t1 { color: var(--t1) } .t2 { color: var(--t2) } .t3 { color: var(--t3) } .t4 { color: var(--t4) } .t5 { color: var(--t5) }
table.source { width: 100%; table-layout: auto } .source th { width: 3em; text-align: right; color: var(--soft); font-weight: 400 } .source th, .source td { border: 0; padding: 0 .6em }
.source code { display: block; min-width: min(72ch, 55vw); white-space: pre-wrap } .source .hit td { background: var(--hit) } .source .hit th { font-weight: 700; color: var(--text) } .by { font-size: .85em; font-weight: 600; white-space: nowrap } .by::before { content: "\25c2 " }
@media print { body { max-width: none; padding: 0 } .tools { display: none } details { break-inside: auto } summary { break-after: avoid } figure, tr { break-inside: avoid } svg { max-width: 100%; height: auto } .scroll { overflow: visible } }
)page";

}  // namespace tsomon::report
