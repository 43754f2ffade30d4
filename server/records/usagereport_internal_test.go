package records

import "testing"

// Agents choose their action types, and a payer opens the table. Where lists have semicolons, a spreadsheet begins a cell at each.
func TestNoSpreadsheetTakesAnActionTypeForAFormula(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"llm.call": "llm.call", "": "", "a-b=c": "a-b=c", "a,=b": "a,=b", "; x": "; x", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@x": "'@x",
		"\tx": "'\tx", "\r=x": "'\r'=x", "x;=cmd|' /C calc'!A0;": "x;'=cmd|' /C calc'!A0;", "x; =1": "x; '=1", "x;\"=1": "x;\"'=1",
		"x\t@y": "x\t'@y", "x\n-1": "x\n'-1", ";;=1": ";;'=1", "\u00a0=1": "\u00a0'=1", "＝1": "'＝1", " =1": " '=1",
	} {
		if got := harmless(given); got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
}
