package console

import (
	"github.com/valyala/fasthttp"
	"remit/client"
)

// changeSession sends a change of the session in the path, and leads back to its page.
func (v *visit) changeSession(method, below string, body any, text string) error {
	id := v.param("session")
	if err := v.api.change(method, "/v1/sessions/"+id+below, v.once(), body, nil); err != nil {
		return err
	}
	return v.done(sessionPath(id), text)
}

func suspendSession(v *visit) error {
	return v.changeSession(fasthttp.MethodPost, "/suspend", v.reasonOf(), "The session and its descendants are suspended.")
}

func resumeSession(v *visit) error {
	return v.changeSession(fasthttp.MethodPost, "/resume", map[string]any{}, "The session and its descendants are resumed.")
}

func endSession(v *visit) error {
	if err := v.confirmed("end"); err != nil {
		return err
	}
	return v.changeSession(fasthttp.MethodPost, "/end", nil, "The session is ended, with its descendants. Pending transactions are rolled back.")
}

func topUpSession(v *visit) error {
	body, err := v.readSome(map[string]func(string) (any, error){
		"add_actions": readCount, "add_value_usd": readAmount, "expires_in_seconds": readCount,
	})
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return invalid("say what to add")
	}
	return v.changeSession(fasthttp.MethodPatch, "", body, "The session's limits are raised.")
}

func rollBack(v *visit) error {
	if err := v.confirmed("roll back"); err != nil {
		return err
	}
	id := v.param("transaction")
	var undone client.TransactionInfo
	if err := v.api.change(fasthttp.MethodPost, "/v1/transactions/"+id+"/rollback", v.once(), v.reasonOf(), &undone); err != nil {
		return err
	}
	to := Prefix
	if undone.SessionID != "" {
		to = sessionPath(undone.SessionID)
	}
	return v.done(to, "The transaction is rolled back: "+usd(undone.Value)+" went back to the session. Its prior state is shown with it; restore that.")
}

func approveRequest(v *visit) error {
	body, err := v.readSome(map[string]func(string) (any, error){"add_actions": readCount, "add_value_usd": readAmount})
	if err != nil {
		return err
	}
	return v.decide("/approve", body, "The request is approved: the session's limits are raised.")
}

func denyRequest(v *visit) error {
	return v.decide("/deny", map[string]any{}, "The request is denied.")
}

// decide decides a request for more, and leads back to the page from which that was done.
func (v *visit) decide(how string, body map[string]any, text string) error {
	if comment := v.form("comment"); comment != "" {
		body["comment"] = comment
	}
	path := "/v1/sessions/" + v.param("session") + "/requests/" + v.param("request") + how
	if err := v.api.change(fasthttp.MethodPost, path, v.once(), body, nil); err != nil {
		return err
	}
	return v.done(v.back(), text)
}
