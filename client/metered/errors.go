package metered

import "remit/client/wire"

// UsageMissing: a complete answer does not say what it used, and what was held is its price; or a request asks for a stream that would
// not say, and was not sent.
type UsageMissing = wire.UsageMissing

// UnboundedCall: nothing bounds what the call can cost. It was not sent.
type UnboundedCall = wire.UnboundedCall
