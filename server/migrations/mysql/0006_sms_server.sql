-- Which server made a send, and in which space of codes: servers whose spaces differ do not see each other's codes.

ALTER TABLE sms_send
    ADD COLUMN server VARCHAR(128), -- machine and process, as in the log
    ADD COLUMN code_space CHAR(16) CHARACTER SET ascii COLLATE ascii_bin; -- keyed digest of the prefix of the code store's keys
