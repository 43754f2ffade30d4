-- Takes the place of another operation inside idempotent.lua or idempotent_sealed.lua: they return the stored outcome of that
-- operation, and cannot carry it out.
--
-- Reply:  {'no_outcome'}
-- Writes: nothing
return {'no_outcome'}
