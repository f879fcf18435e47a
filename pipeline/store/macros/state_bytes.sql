-- Bytes of weights, gradients and Adam's states per parameter, as estimates of a framework's runs count them: 2 + 4 + 12
-- with gradients in 32 bit, 2 + 2 + 12 of trainers that keep them in 16 bit. One convention, tested against the
-- estimator's constants; without an argument that of a framework that nothing is known of.
CREATE MACRO state_bytes_per_param(framework := NULL) AS
    CASE WHEN coalesce(framework, '') IN ('nemo', 'mlperf', 'internevo') THEN 16.0 ELSE 18.0 END;
