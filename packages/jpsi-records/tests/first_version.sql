INSERT INTO execution VALUES (
    'e1', 'sha256:4f02894bf329be07b81e6ab62ae3eeb1db482056c1ca1eeadc3ac93d2710491e',
    '{"command":["sort","-u"],"v":1}', 'sort', 'complete', 1, 2, 0, NULL, 1, '{}', '{"vcpus": 1}', '{}', 3,
    NULL, NULL, NULL, NULL, NULL,
    '2026-01-01T00:00:00.000000+00:00', '2026-01-01T00:00:01.000000+00:00', '2026-01-01T00:00:02.000000+00:00'
);
INSERT INTO request VALUES (
    'r1', 'ca', 'final', '{"command": ["sort", "-u"]}', 2, NULL, NULL, 'a name', '', '{"a": "b"}', 'e1', 'complete',
    '2026-01-01T00:00:00.000000+00:00', '2026-01-01T00:00:00.000000+00:00', 'ca'
);
INSERT INTO attempt VALUES (
    'a1', 'e1', 1, 'local', 'j1', '17', 'COMPLETED', 0, NULL, NULL,
    '2026-01-01T00:00:00.000000+00:00', '2026-01-01T00:00:02.000000+00:00'
);
INSERT INTO event (time, kind, request, data) VALUES ('2026-01-01T00:00:00.000000+00:00', 'created', 'r1', '{}');
INSERT INTO event (time, kind, request, execution, owner, priority, state, data)
VALUES ('2026-01-01T00:00:00.000000+00:00', 'accounting', 'r1', 'e1', 'ca', 2, 'queued', '{}');
INSERT INTO event (time, kind, request, execution, owner, priority, state, data)
VALUES ('2026-01-01T00:00:02.000000+00:00', 'accounting', 'r1', 'e1', 'ca', 2, 'none', '{}')
