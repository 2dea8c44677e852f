-- Extends a lease to its full length, if the token owns it and it is live.
-- KEYS[1] the lease, ARGV[1] the token, ARGV[2] its length in milliseconds.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
