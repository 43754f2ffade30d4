-- Refuses a request for more that is decided otherwise.
-- Takes status.
if status ~= 'pending' then
  return {'request_decided'}
end
