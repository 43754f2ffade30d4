-- Refuses an agent that would settle or change a transaction that the metering gateway holds, and the gateway for any other.
-- Takes by_gateway, caller_family, transaction_held_by_gateway.
if by_gateway and not transaction_held_by_gateway then
  return {'unknown_transaction'}
elseif caller_family ~= '' and transaction_held_by_gateway then
  return {'held_by_gateway'}
end
