package console

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// refuse answers a form whose request failed with the page of that form: open, filled with what was typed, and with the fields at fault
// marked. Nothing of it is kept here or in a cookie. Without such a page it leads to the one that the form names, with a message.
func (v *visit) refuse(p *problem) error {
	said := flash{Failed: true, Text: strings.TrimSpace(v.page.undone + " " + p.text())}
	kept := refusedForm{action: v.path, method: "post", typed: v.ctx.PostArgs(), problem: p, undone: v.page.undone, here: v.back()}
	if p.Code == codeOutcomeUnknown {
		kept.once = v.once() // sent again, it is still done once
	}
	if v.showForm(kept.here, said, kept) {
		return nil
	}
	return v.leave(kept.here, said)
}

// refuseSearch answers a search form that the API refuses in the same way: the page is shown as if nothing was searched for. It returns
// false, and answers nothing, when no field of a form of the page is at fault.
func (v *visit) refuseSearch(p *problem) bool {
	if p.Status != fasthttp.StatusBadRequest || v.said != nil {
		return false
	}
	kept := refusedForm{action: v.path, method: "get", typed: v.query, problem: p}
	return v.showForm(v.path, flash{Failed: true, Text: p.text()}, kept)
}

// showForm answers with the page at an own path, with a message and with the form as it was sent. It returns false, and answers
// nothing, when the viewer has no such page or it has no such form.
func (v *visit) showForm(to string, said flash, kept refusedForm) bool {
	path, text, _ := strings.Cut(to, "?")
	shown, params, err := v.console.router.find(get, path)
	if err != nil || shown.open != nil || shown.stream || shown.raw || !v.has(shown.role) {
		return false
	}
	again := *v
	again.page, again.params, again.path, again.said = shown, params, path, &said
	again.query = new(fasthttp.Args)
	again.query.Parse(text)
	if err := shown.handle(&again); err != nil {
		return false
	}
	page, err := kept.fillIn(v.ctx.Response.Body())
	if err != nil {
		v.ctx.Response.ResetBody()
		return false
	}
	tellRetryAfter(v.ctx, kept.problem)
	v.ctx.SetStatusCode(kept.problem.Status)
	v.ctx.Response.SetBodyRaw(page)
	return true
}

// faults returns what a problem says of the fields of a form with these names. The API names a field as its request has it, which may be
// in an object or a list, or the limit that a request does not fit into.
func (p *problem) faults(hasField func(string) bool) (found []fault) {
	for _, e := range p.Errors {
		name := fieldNamed(e.Field, hasField)
		isKnown := slices.ContainsFunc(found, func(f fault) bool { return f.Field == name }) // of a list with several at fault
		if name != "" && !isKnown {
			found = append(found, fault{name, e.Message})
		}
	}
	if len(p.Errors) > 0 || p.Status >= fasthttp.StatusInternalServerError {
		return found
	}
	for _, field := range []string{p.Limit, fieldsOfRefusals[p.Detail], fieldsOfRefusals[p.Code]} {
		if name := fieldNamed(field, hasField); name != "" {
			return []fault{{name, p.Detail}}
		}
	}
	return nil
}

// fieldsOfRefusals are the fields that a refusal with this code or this detail is about, when it names none.
var fieldsOfRefusals = map[string]string{
	"budget_exhausted":      "max_value_usd",
	"insufficient_scope":    "scopes",
	"agent_suspended":       "agent_id",
	"agent_revoked":         "agent_id",
	"no such agent":         "agent_id",
	"agent_limit_reached":   "agent_id",
	"no such session":       "parent_session_id",
	"session_suspended":     "parent_session_id",
	"session_not_active":    "parent_session_id",
	"session_limit_reached": "parent_session_id",
}

// fieldNamed returns the field of a form that the API's name of a field or of a limit is about, "" for none.
func fieldNamed(name string, hasField func(string) bool) string {
	name, _, _ = strings.Cut(name[strings.LastIndexByte(name, '.')+1:], "[")
	limit := strings.TrimPrefix(name, "max_")
	for _, candidate := range []string{name, "add_" + limit, strings.TrimSuffix(name, "_id"), strings.TrimSuffix(name, "s"), sameField[name]} {
		if candidate != "" && hasField(candidate) {
			return candidate
		}
	}
	return ""
}

// sameField are fields of forms that set what the API names otherwise.
var sameField = map[string]string{"expires_at": "expires_in_seconds"}
