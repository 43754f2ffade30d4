package console

import (
	"github.com/valyala/fasthttp"
	"remit/client"
)

const (
	apiSession = "/v1/sessions/{session}"
	apiRequest = apiSession + "/requests/{request}"
)

var (
	suspendSession   = call{post, apiSession + "/suspend", reason, session, "The session and its descendants are suspended."}
	resumeSession    = call{post, apiSession + "/resume", nil, session, "The session and its descendants are resumed."}
	endSession       = call{post, apiSession + "/end", nil, session, "The session is ended, with its descendants. Pending transactions are rolled back."}
	deleteSessionKey = call{fasthttp.MethodDelete, apiSession + "/keys/{sessionkey}", nil, session, "The session key is deleted."}
	denyRequest      = call{post, apiRequest + "/deny", fields{"comment": readText}, "", "The request is denied."}
	approveRequest   = call{
		post, apiRequest + "/approve", fields{"add_actions": readCount, "add_value_usd": readAmount, "comment": readText},
		"", "The request is approved: the session's limits are raised.",
	}
)

func createSessionKey(v *visit) error {
	body, err := fields{"name": readText}.given(v)
	if err != nil {
		return err
	}
	var made client.SessionKeyInfo
	if err := v.send(post, apiSession+"/keys", body, &made); err != nil {
		return err
	}
	return v.reveal(v.at(session), "The session key is created.", "Session key", string(made.Key))
}

func topUpSession(v *visit) error {
	body, err := fields{"add_actions": readCount, "add_value_usd": readAmount, "expires_in_seconds": readCount}.given(v)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return invalid("say what to add")
	}
	if err := v.send(fasthttp.MethodPatch, apiSession, body, nil); err != nil {
		return err
	}
	return v.done(v.at(session), "The session's limits are raised.")
}

func rollBack(v *visit) error {
	body, err := reason.given(v)
	if err != nil {
		return err
	}
	var undone client.TransactionInfo
	if err := v.send(post, "/v1/transactions/{transaction}/rollback", body, &undone); err != nil {
		return err
	}
	to := Prefix
	if undone.SessionID != "" {
		to = sessionPath(undone.SessionID)
	}
	return v.done(to, "The transaction is rolled back: "+usd(undone.Value)+" went back to the session. Its prior state is shown with it; restore that.")
}
