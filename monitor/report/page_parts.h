// What the page has besides the findings: its style and its script, as they stand in it.
//
// Script      Filters, searches, moves with the keyboard and opens what an address names. The page is complete without it.
//             It reads text of the page and never writes markup.
#pragma once

namespace tsomon::report {

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace tsomon::report
