package main

import "time"

// refreshFact is one refresh of an agent's tokens.
type refreshFact struct {
	agent     string
	presented tokenPair
	doubt     time.Duration // since the same token was first presented without an answer; 0: it was not
	reply     reply
}

// refreshGrace is how long the service returns the same successor for a token whose answer got lost: a little less than
// its default.
const refreshGrace = 55 * time.Second

// checkRefresh judges the answer to a refresh; one without an answer is tried again later and judged then. As each
// refresh presents the token that the one before it returned, a second success shows that a successor works. No token
// is quoted in what is found.
func checkRefresh(f refreshFact) []violation {
	switch f.reply.outcome() {
	case unknown:
		return nil
	case refused:
		if f.doubt > refreshGrace {
			return []violation{found(ruleUnchecked, f.agent, "refresh refused with %s, %s after one without an answer", f.reply, f.doubt)}
		}
		return []violation{found(ruleRefresh, f.agent, "refused with %s", f.reply)}
	}
	next := readTokens(f.reply)
	switch {
	case !next.usable():
		return []violation{found(ruleRefresh, f.agent, "token pair is incomplete")}
	case next.RefreshToken == f.presented.RefreshToken, next.AccessToken == f.presented.AccessToken:
		return []violation{found(ruleRefresh, f.agent, "a token came back unchanged")}
	}
	return nil
}

// checkAgent judges how often an agent's refresh worked: once with its first token, and once with a successor.
func checkAgent(agent string, refreshes int) []violation {
	if refreshes < 2 {
		return []violation{found(ruleUnchecked, agent, "%d refreshes worked, so no successor was presented", refreshes)}
	}
	return nil
}
