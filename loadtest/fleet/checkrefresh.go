package fleet

import "time"

// refreshFact is one refresh of an agent's tokens.
type refreshFact struct {
	agent     string
	presented tokenPair
	doubt     time.Duration // since the first presentation of the same token got no answer; 0: none
	reply     reply
}

// refreshGrace is how long the service returns the same successor for a repeated token: a little less than its default.
const refreshGrace = 55 * time.Second

// checkRefresh checks the answer to a refresh. One without an answer is retried later and checked then. Each refresh
// presents the token that the previous one returned, so a second success shows that a successor works. Violations never
// quote a token.
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
	next := decoded[tokenPair](f.reply.body)
	switch {
	case !next.usable():
		return []violation{found(ruleRefresh, f.agent, "the token pair is incomplete")}
	case next.RefreshToken == f.presented.RefreshToken, next.AccessToken == f.presented.AccessToken:
		return []violation{found(ruleRefresh, f.agent, "the service returned the presented token")}
	}
	return nil
}

// checkAgent checks that an agent refreshed at least twice: with its first token and with a successor.
func checkAgent(agent string, refreshes int) []violation {
	if refreshes < 2 {
		return []violation{found(ruleUnchecked, agent, "%d refreshes succeeded, so no successor was presented", refreshes)}
	}
	return nil
}
