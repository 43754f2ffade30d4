-- Does nothing. Inside idempotent.lua or idempotent_sealed.lua it returns the stored outcome of another operation, and cannot
-- carry that operation out.
--
-- Reply:  {'no_outcome'}
-- Writes: nothing
return {'no_outcome'}
