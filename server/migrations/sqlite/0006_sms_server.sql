-- Which server made a send, and in which space of codes: servers whose spaces differ do not see each other's codes.

ALTER TABLE sms_send ADD COLUMN server TEXT; -- machine and process, as in the log
ALTER TABLE sms_send ADD COLUMN code_space TEXT; -- keyed digest of the prefix of the code store's keys
